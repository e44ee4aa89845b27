#include "ott/core/checkpoint/distributed_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/torch_file.h"
#include "ott/core/checkpoint/torch_objects.h"
#include "ott/core/checkpoint/zip_archive.h"
#include "ott/core/pickle/pickle.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott {
namespace {

using Type = PlainData::Type;

absl::Status NotUnderstood(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the metadata has ", std::string(what)));
}

// A name and where in the tensor a chunk begins; no place for other values.
struct ChunkKey {
  std::string name;
  Dims offset;
  bool operator<(const ChunkKey& other) const {
    return std::tie(name, offset) < std::tie(other.name, other.offset);
  }
};

// Bytes of a file.
struct ChunkPlace {
  std::string file;
  int64_t offset = 0;
  int64_t num_bytes = 0;
};

class Reader {
 public:
  Reader(const std::string& dir, const Pickle& metadata)
      : dir_(dir), data_(metadata.data), root_(&data_[metadata.root]) {}

  absl::StatusOr<Value> Read() {
    const PlainData::Value* const tensors = Attribute(*root_, "state_dict_metadata");
    if (tensors == nullptr || tensors->type != Type::kMap) return NotUnderstood("no map of what was saved");
    OTT_RETURN_IF_ERROR(ReadPlaces());
    if (const PlainData::Value* const paths = Attribute(*root_, "planner_data")) {
      for (size_t i = 0; paths->type == Type::kMap && i + 1 < paths->items.size(); i += 2) {
        paths_.emplace(data_[paths->items[i]].text, &data_[paths->items[i + 1]]);
      }
    }
    Value tree = ValueMap();
    for (size_t i = 0; i + 1 < tensors->items.size(); i += 2) {
      const PlainData::Value& key = data_[tensors->items[i]];
      if (key.type != Type::kText) return NotUnderstood("a name that is no text");
      const std::string name(key.text);
      absl::StatusOr<Value> value = ReadEntry(name, data_[tensors->items[i + 1]]);
      if (!value.ok()) return WithContext(absl::StrCat("'", name, "'"), value.status());
      OTT_RETURN_IF_ERROR(Insert(name, *std::move(value), &tree));
    }
    return tree;
  }

 private:
  // Null if the object has none.
  const PlainData::Value* Attribute(const PlainData::Value& object, std::string_view name) const {
    if (object.type != Type::kObject || object.items[PlainData::kState] == PlainData::kNoValue)
      return nullptr;
    return data_.Find(data_[object.items[PlainData::kState]], name);
  }

  // Returns the sizes in a torch.Size, which holds a tuple; one that holds itself has none.
  std::optional<Dims> DimsOf(const PlainData::Value* size) const {
    for (int i = 0; i < 2 && size != nullptr && size->type == Type::kObject; ++i) {
      const PlainData::Value& arguments = data_[size->items[PlainData::kArguments]];
      size = arguments.items.size() == 1 ? &data_[arguments.items[0]] : &arguments;
    }
    if (size == nullptr || size->type != Type::kList) return std::nullopt;
    Dims dims;
    for (const PlainData::Index item : size->items) {
      if (data_[item].type != Type::kInteger || data_[item].integer < 0) return std::nullopt;
      dims.push_back(data_[item].integer);
    }
    return dims;
  }

  absl::Status ReadPlaces() {
    const PlainData::Value* const places = Attribute(*root_, "storage_data");
    if (places == nullptr || places->type != Type::kMap) return NotUnderstood("no map of where it lies");
    for (size_t i = 0; i + 1 < places->items.size(); i += 2) {
      const PlainData::Value& key = data_[places->items[i]];
      const PlainData::Value& value = data_[places->items[i + 1]];
      const PlainData::Value* const name = Attribute(key, "fqn");
      const PlainData::Value* const offset = Attribute(value, "offset");
      const PlainData::Value* const length = Attribute(value, "length");
      const std::string file(TextOf(Attribute(value, "relative_path")));
      if (name == nullptr || offset == nullptr || length == nullptr || file.empty()) {
        return NotUnderstood("a place that is none");
      }
      if (file.find('/') != file.npos || file == "..") {
        return absl::InvalidArgumentError(absl::StrCat("the file of '", std::string(TextOf(name)), "', '",
                                                       file, "', leads out of the folder"));
      }
      const std::optional<Dims> first = DimsOf(Attribute(key, "offset"));
      places_[{std::string(TextOf(name)), first ? *first : Dims()}] = {file, offset->integer,
                                                                       length->integer};
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Value> ReadEntry(const std::string& name, const PlainData::Value& entry) {
    const PlainData::Value* const chunks = Attribute(entry, "chunks");
    if (chunks == nullptr) return ReadChunk({name, {}});
    const std::optional<Dims> shape = DimsOf(Attribute(entry, "size"));
    if (!shape.has_value() || chunks->type != Type::kList) return NotUnderstood("a tensor without a shape");
    std::optional<DType> dtype = DTypeOfEntry(entry);
    std::vector<TensorPart> parts;
    for (const PlainData::Index item : chunks->items) {
      std::optional<Dims> offset = DimsOf(Attribute(data_[item], "offsets"));
      const std::optional<Dims> sizes = DimsOf(Attribute(data_[item], "sizes"));
      if (!offset.has_value() || !sizes.has_value()) return NotUnderstood("a chunk without a place");
      OTT_ASSIGN_OR_RETURN(const Value chunk, ReadChunk({name, *offset}));
      if (!chunk.is_tensor() || chunk.tensor().view.shape() != *sizes) {
        return absl::DataLossError(absl::StrCat("its chunk at ", ShapeToString(*offset), " is no tensor of ",
                                                ShapeToString(*sizes), ", as the metadata says"));
      }
      dtype = chunk.tensor().view.dtype();
      // A tensor that is not aligned is scattered as well, into one part.
      const std::shared_ptr<const ScatteredElements>& scattered = chunk.tensor().scattered;
      parts.push_back(
          {scattered == nullptr ? chunk.tensor() : scattered->parts()[0].tensor, *std::move(offset)});
    }
    if (!dtype.has_value()) return NotUnderstood("a tensor without a dtype");
    if (IsMegatronBucket(name) && shape->size() == 1) OTT_RETURN_IF_ERROR(ClearPadding(name, &parts));
    const std::optional<Dims> unflattened = UnflattenedShape(name);
    if (unflattened.has_value()) {
      OTT_ASSIGN_OR_RETURN(parts, Unflatten(*unflattened, *shape, parts));
    }
    const Dims& whole = unflattened.has_value() ? *unflattened : *shape;
    OTT_ASSIGN_OR_RETURN(Tensor tensor, ScatteredElements::Join(*dtype, whole, whole, std::move(parts)));
    return Value(std::move(tensor));
  }

  // Megatron's distributed optimizer in its format dp_reshardable: a bucket of flat parameters, each of which
  // begins at a multiple of kBucketAlignment elements.
  static bool IsMegatronBucket(const std::string& name) {
    return name.find("optimizer.distributed.") != name.npos && name.find(".bucket_idx_") != name.npos;
  }

  // Megatron writes what lies between the parameters of a bucket from memory that nobody set: as zeros, it is
  // the same wherever the parameters are. A rank has one chunk of a parameter, so what follows it on that
  // rank without being aligned is padding.
  absl::Status ClearPadding(const std::string& name, std::vector<TensorPart>* parts) const {
    static constexpr int64_t kBucketAlignment = 64;
    alignas(64) static constexpr char kZeros[kBucketAlignment * 16] = {};
    for (const TensorPart& part : *parts) {
      if (part.offset.size() != 1) return NotUnderstood("a chunk of a bucket that is no range");
    }
    std::sort(parts->begin(), parts->end(),
              [](const TensorPart& a, const TensorPart& b) { return a.offset < b.offset; });
    // "__3_0.distcp" is of rank 3.
    const auto rank_of = [&](const TensorPart& part) {
      const auto place = places_.find({name, part.offset});
      return place->second.file.substr(0, place->second.file.rfind('_'));
    };
    for (size_t i = 0; i < parts->size(); ++i) {
      TensorPart& part = (*parts)[i];
      const TensorView& view = part.tensor.view;
      if (part.offset[0] % kBucketAlignment == 0 || view.num_elements() >= kBucketAlignment) continue;
      if (i == 0 || rank_of(part) != rank_of((*parts)[i - 1])) {
        return absl::UnimplementedError(
            absl::StrCat("whether its ", view.num_elements(), " elements at ", part.offset[0],
                         " are a parameter's or padding cannot be told; ", kFullyReshardable));
      }
      part.tensor = {TensorView(kZeros, view.dtype(), view.shape()), nullptr};
    }
    return absl::OkStatus();
  }

  // The shape of a tensor of which Megatron-core before 0.14 wrote each rank's part as a flat one; nullopt
  // for any other.
  std::optional<Dims> UnflattenedShape(const std::string& name) const {
    const PlainData::Value* const of_tensor = data_.Find(Attribute(*root_, "mcore_data"), name);
    return DimsOf(data_.Find(of_tensor, "nd_reformulated_orig_global_shape"));
  }

  // The boxes of the whole tensor that the parts are: `flat` has how many ranks' parts there are along each
  // of its dimensions, then the elements of one.
  absl::StatusOr<std::vector<TensorPart>> Unflatten(const Dims& whole, const Dims& flat,
                                                    const std::vector<TensorPart>& parts) const {
    bool fits = !whole.empty() && flat.size() == whole.size() + 1;
    Dims local;
    int64_t num_local = 1;
    for (size_t dim = 0; fits && dim < whole.size(); ++dim) {
      fits = flat[dim] > 0 && whole[dim] % flat[dim] == 0 &&
             !__builtin_mul_overflow(num_local, whole[dim] / flat[dim], &num_local);
      if (fits) local.push_back(whole[dim] / flat[dim]);
    }
    if (!fits || num_local != flat.back())
      return NotUnderstood("a tensor of parts that are not those of its shape");
    std::vector<TensorPart> boxes;
    for (const TensorPart& part : parts) {
      OTT_RETURN_IF_ERROR(CheckFlat(part, flat));
      Dims origin;
      for (size_t dim = 0; dim < whole.size(); ++dim) origin.push_back(part.offset[dim] * local[dim]);
      const char* data = static_cast<const char*>(part.tensor.view.data());
      AddBoxes(part.tensor, local, 0, origin, part.offset.back(),
               part.offset.back() + part.tensor.view.num_elements(), &data, &boxes);
    }
    return boxes;
  }

  // A range of one rank's elements.
  static absl::Status CheckFlat(const TensorPart& part, const Dims& flat) {
    const TensorView& view = part.tensor.view;
    bool fits = part.offset.size() == flat.size() && view.shape().size() == flat.size() &&
                view.is_contiguous() && view.num_elements() == view.shape().back() &&
                view.num_elements() <= flat.back() - part.offset.back();
    for (size_t dim = 0; fits && dim < flat.size(); ++dim) fits = part.offset[dim] < flat[dim];
    return fits ? absl::OkStatus() : NotUnderstood("a part that is no range of a rank's elements");
  }

  // Adds the row-major elements [begin, end) of the last dimensions of a rank's box, of which there are at
  // most 2 * dimensions - 1 boxes. origin: of what the range lies in. data: the first of them, moved behind
  // them.
  static void AddBoxes(const Tensor& tensor, const Dims& local, size_t dim, Dims origin, int64_t begin,
                       int64_t end, const char** data, std::vector<TensorPart>* boxes) {
    int64_t row = 1;
    for (size_t inner = dim + 1; inner < local.size(); ++inner) row *= local[inner];
    while (begin < end) {
      const int64_t first = begin / row;
      const int64_t num_rows = (end - begin) / row;
      const bool is_whole = begin % row == 0 && num_rows > 0;
      const int64_t stop = is_whole ? begin + num_rows * row : std::min(end, (first + 1) * row);
      Dims at = origin;
      at[dim] += first;
      if (is_whole) {
        Dims shape(local.size(), 1);
        shape[dim] = num_rows;
        std::copy(local.begin() + dim + 1, local.end(), shape.begin() + dim + 1);
        boxes->push_back(
            {{TensorView(*data, tensor.view.dtype(), shape), tensor.owner, tensor.file_backed}, at});
        *data += num_rows * row * SizeOf(tensor.view.dtype());
      } else {
        AddBoxes(tensor, local, dim + 1, at, begin - first * row, stop - first * row, data, boxes);
      }
      begin = stop;
    }
  }

  // Returns the first element of the state of the tensor's properties, its dtype.
  std::optional<DType> DTypeOfEntry(const PlainData::Value& entry) const {
    const PlainData::Value* const properties = Attribute(entry, "properties");
    if (properties == nullptr || properties->type != Type::kObject ||
        properties->items[PlainData::kState] == PlainData::kNoValue) {
      return std::nullopt;
    }
    const PlainData::Value& state = data_[properties->items[PlainData::kState]];
    if (state.type != Type::kList || state.items.empty()) return std::nullopt;
    return TorchDType(data_[state.items[0]].text);
  }

  // Reads the value that torch.save wrote into a part of a file.
  absl::StatusOr<Value> ReadChunk(const ChunkKey& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) {
      return absl::DataLossError(
          absl::StrCat("the metadata does not say where its chunk at ", ShapeToString(key.offset), " lies"));
    }
    const ChunkPlace& place = found->second;
    auto file = files_.find(place.file);
    if (file == files_.end()) {
      OTT_ASSIGN_OR_RETURN(auto mapped, MappedFile::Open(absl::StrCat(dir_, "/", place.file)));
      file = files_.emplace(place.file, std::move(mapped)).first;
    }
    const int64_t size = file->second->size();
    if (place.offset < 0 || place.num_bytes < 0 || place.offset > size ||
        place.num_bytes > size - place.offset) {
      return absl::DataLossError(absl::StrCat(place.file, " has ", size, " bytes, but the metadata says ",
                                              place.num_bytes, " behind byte ", place.offset));
    }
    const HeldBytes bytes{{file->second->data() + place.offset, static_cast<size_t>(place.num_bytes)},
                          file->second,
                          /*file_backed=*/true};
    const std::string context = absl::StrCat(place.file, ", behind byte ", place.offset);
    const absl::StatusOr<ZipArchive> archive = ZipArchive::Open(bytes);
    if (!archive.ok()) return WithContext(context, archive.status());
    if (!IsTorchArchive(*archive))
      return WithContext(context, NotUnderstood("something else than torch.save's"));
    absl::StatusOr<Value> value = ReadTorchArchive(*archive);
    return value.ok() ? value : WithContext(context, value.status());
  }

  // At the path that the metadata gives, in which numbers are those of lists, or else by its name.
  absl::Status Insert(const std::string& name, Value value, Value* tree) {
    const auto found = paths_.find(name);
    const PlainData::Value* const path = found == paths_.end() ? nullptr : found->second;
    Value* at = tree;
    if (path == nullptr || path->type != Type::kList) {
      at->map().Insert(name, std::move(value));
      return absl::OkStatus();
    }
    for (const PlainData::Index item : path->items) {
      const PlainData::Value& step = data_[item];
      at = step.type == Type::kInteger ? ItemAt(step.integer, at) : ChildAt(std::string(TextOf(&step)), at);
      if (at == nullptr)
        return NotUnderstood(absl::StrCat("a path of '", name, "' that does not fit the others"));
    }
    if (!at->is_null()) return NotUnderstood(absl::StrCat("two values at the path of '", name, "'"));
    *at = std::move(value);
    return absl::OkStatus();
  }

  // Null if the value is something else already. Items may come in any order, and those of all lists are not
  // many more than there are values.
  Value* ItemAt(int64_t i, Value* value) {
    if (value->is_null()) *value = Value::List();
    if (!value->is_list() || i < 0) return nullptr;
    const auto size = static_cast<int64_t>(value->list().size());
    if (i < size) return &value->list()[i];
    if (i >= max_new_items_) return nullptr;
    max_new_items_ -= i + 1 - size;
    value->list().resize(i + 1);
    return &value->list()[i];
  }

  static Value* ChildAt(const std::string& name, Value* value) {
    if (value->is_null()) *value = ValueMap();
    if (!value->is_map()) return nullptr;
    Value* const child = value->map().Find(name);
    return child != nullptr ? child : value->map().Insert(name, Value());
  }

  const std::string dir_;
  const PlainData& data_;
  const PlainData::Value* const root_;
  std::unordered_map<std::string_view, const PlainData::Value*> paths_;
  std::map<ChunkKey, ChunkPlace> places_;
  int64_t max_new_items_ = int64_t{1} << 20;
  std::unordered_map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace

absl::StatusOr<Value> ReadDistributedCheckpoint(const std::string& dir) {
  const std::string path = absl::StrCat(dir, "/", kDistributedMetadata);
  OTT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const absl::StatusOr<Pickle> metadata = ParsePickle({file->data(), static_cast<size_t>(file->size())});
  if (!metadata.ok()) return WithContext(path, metadata.status());
  absl::StatusOr<Value> value = Reader(dir, *metadata).Read();
  return value.ok() ? value : WithContext(path, value.status());
}

}  // namespace ott
