// The parts of TensorDumper that need protobuf, apart from the rest.

#include "ott/core/base/config.pb.h"
#include "ott/core/base/iteration_selection.h"
#include "ott/core/dumper/tensor_dumper.h"

namespace ott {
namespace {

// REQUIRES: not FORMAT_DEFAULT
DumpFormat ToDumpFormat(DumpConfig::Format format) {
  switch (format) {
    case DumpConfig::FORMAT_BINARY:
      return DumpFormat::kBinary;
    case DumpConfig::FORMAT_NPY:
      return DumpFormat::kNpy;
    case DumpConfig::FORMAT_SAFETENSORS:
      return DumpFormat::kSafetensors;
    case DumpConfig::FORMAT_STATISTICS:
      return DumpFormat::kStatistics;
    case DumpConfig::FORMAT_IMAGE_RGB:
      return DumpFormat::kImageRgb;
    case DumpConfig::FORMAT_IMAGE_BGR:
      return DumpFormat::kImageBgr;
    case DumpConfig::FORMAT_IMAGE_I:
      return DumpFormat::kImageI;
    case DumpConfig::FORMAT_JSON:
    default:
      return DumpFormat::kJson;
  }
}

template <typename T>
std::vector<T> ToVector(const google::protobuf::RepeatedPtrField<T>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

TensorDumperOptions TensorDumper::FromConfig(const DumpConfig& config) {
  TensorDumperOptions options;
  options.sync = config.sync();
  options.selection.iterations = OptionsOf(config.iterations());
  options.selection.ranks.assign(config.ranks().begin(), config.ranks().end());
  options.selection.include_globs = ToVector(config.include_globs());
  options.selection.include_regexes = ToVector(config.include_regexes());
  options.selection.exclude_globs = ToVector(config.exclude_globs());
  options.selection.exclude_regexes = ToVector(config.exclude_regexes());
  for (const DumpConfig::FormatOfPaths& formats : config.formats()) {
    if (formats.format() == DumpConfig::FORMAT_DEFAULT) continue;
    options.formats.push_back({ToDumpFormat(formats.format()), ToVector(formats.paths())});
  }
  if (config.format_for_all() != DumpConfig::FORMAT_DEFAULT) {
    options.formats.push_back({ToDumpFormat(config.format_for_all()), {"*"}});
  }
  if (config.max_bytes_per_dump() != 0) options.max_bytes_per_dump = config.max_bytes_per_dump();
  options.num_writer_threads = config.num_writer_threads() == 0 ? 1 : config.num_writer_threads();
  if (config.synchronous()) options.num_writer_threads = 0;
  if (config.has_num_json_threads()) options.num_json_threads = config.num_json_threads();
  if (config.max_queued_bytes() != 0) options.max_queued_bytes = config.max_queued_bytes();
  if (config.has_reserved_bytes()) options.reserved_bytes = config.reserved_bytes();
  options.drop_when_full = config.drop_when_full();
  return options;
}

}  // namespace ott
