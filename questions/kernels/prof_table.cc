#include "ott/questions/kernels/prof_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/status_macros.h"
#include "ott/questions/kernels/prof_column.h"
#include "ott/questions/kernels/table_writer.h"

namespace ott::kernels {
namespace {

bool MatchesFilter(const std::string& glob, std::string_view text) {
  return glob.empty() || MatchesGlob(text, glob);
}

bool NoFilters(const ProfTableOptions& o) {
  return o.op.empty() && o.layer.empty() && o.kernel.empty() && o.phase.empty() && o.direction.empty() &&
         o.ranks.empty() && o.begin_seconds <= 0 && o.end_seconds < 0;
}

// Returns true if a comes before b: large numbers, then texts, then what is not known, then what is not
// there.
bool Before(const ProfCell& a, const ProfCell& b) {
  if (a.is_number() && b.is_number()) return a.number() > b.number();
  if (a.is_number() != b.is_number()) return a.is_number();
  if (a.kind != b.kind) return a.kind < b.kind;
  return a.kind == ProfCell::Kind::kText && a.text < b.text;
}

// Sums over the kernels of a group.
struct Group {
  std::vector<ProfCell> keys;
  int64_t count = 0;
  int64_t sil = 0;
  int64_t min = 0;
  int64_t max = 0;
  double flops = 0;
  double bytes = 0;
  int64_t tensor_core_sil = 0;
  int64_t unknown_tensor_core_sil = 0;
  // Time of kernels whose FLOPs and bytes are known; kernels counted elsewhere add to both.
  int64_t flops_sil = 0;
  int64_t bytes_sil = 0;
  int64_t num_flops = 0;  // kernels that have FLOPs
  int64_t num_bytes = 0;
  int64_t gap = 0;
};

struct GroupColumn {
  std::string_view name;
  ProfCell (*get)(const Group& group, int64_t total);
};

// A sum, or what comes of it: not there if all kernels are counted elsewhere, not known if none has it.
ProfCell SumCell(double sum, int64_t count, int64_t known_sil, int64_t sil) {
  if (count > 0) return RealCell(sum);
  return known_sil == sil ? ProfCell() : RealCell(KernelRow::kUnknown);
}

double Rate(double amount, int64_t sil) {
  return sil > 0 ? amount / (static_cast<double>(sil) * 1e-9) : KernelRow::kUnknown;
}

double Percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : KernelRow::kUnknown;
}

constexpr GroupColumn kGroupColumns[] = {
    {"count", [](const Group& g, int64_t) { return IntegerCell(g.count); }},
    {"sil", [](const Group& g, int64_t) { return IntegerCell(g.sil); }},
    {"share", [](const Group& g, int64_t total) { return RealCell(Percent(g.sil, total)); }},
    {"mean", [](const Group& g, int64_t) { return IntegerCell(g.sil / g.count); }},
    {"min", [](const Group& g, int64_t) { return IntegerCell(g.min); }},
    {"max", [](const Group& g, int64_t) { return IntegerCell(g.max); }},
    {"tc",
     [](const Group& g, int64_t) {
       return RealCell(g.unknown_tensor_core_sil == g.sil && g.sil > 0 ? KernelRow::kUnknown
                                                                       : Percent(g.tensor_core_sil, g.sil));
     }},
    {"flops", [](const Group& g, int64_t) { return SumCell(g.flops, g.num_flops, g.flops_sil, g.sil); }},
    {"bytes", [](const Group& g, int64_t) { return SumCell(g.bytes, g.num_bytes, g.bytes_sil, g.sil); }},
    {"tflops",
     [](const Group& g, int64_t) {
       return SumCell(Rate(g.flops, g.flops_sil) * 1e-12, g.num_flops, g.flops_sil, g.sil);
     }},
    {"gbps",
     [](const Group& g, int64_t) {
       return SumCell(Rate(g.bytes, g.bytes_sil) * 1e-9, g.num_bytes, g.bytes_sil, g.sil);
     }},
    {"known", [](const Group& g, int64_t) { return RealCell(Percent(g.flops_sil, g.sil)); }},
    {"gap", [](const Group& g, int64_t) { return IntegerCell(g.gap); }},
};

void AddTo(const KernelRow& row, Group* group) {
  group->min = group->count == 0 ? row.sil : std::min(group->min, row.sil);
  group->max = std::max(group->max, row.sil);
  ++group->count;
  group->sil += row.sil;
  if (row.tc == "1") group->tensor_core_sil += row.sil;
  if (row.tc.empty()) group->unknown_tensor_core_sil += row.sil;
  if (row.gap != kNoInteger) group->gap += row.gap;
  if (row.counted_elsewhere || !std::isnan(row.flops)) group->flops_sil += row.sil;
  if (row.counted_elsewhere || !std::isnan(row.bytes)) group->bytes_sil += row.sil;
  if (!std::isnan(row.flops)) {
    group->flops += row.flops;
    ++group->num_flops;
  }
  if (!std::isnan(row.bytes)) {
    group->bytes += row.bytes;
    ++group->num_bytes;
  }
}

absl::Status WriteGroups(const KernelRows& rows, const ProfTableOptions& options,
                         const std::function<void(std::string_view)>& write) {
  OTT_ASSIGN_OR_RETURN(const std::vector<const ProfColumn*> keys, ParseProfColumns(options.group_by));
  absl::flat_hash_map<std::string, size_t> index;
  std::vector<Group> groups;
  int64_t total = 0;
  KernelRow row;
  std::string joined;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows.Get(i, &row);
    if (!PassesFilters(options, row)) continue;
    joined.clear();
    for (const ProfColumn* key : keys) {
      AppendCell(key->get(row), false, &joined);
      joined.push_back('\0');
    }
    const auto [entry, added] = index.try_emplace(joined, groups.size());
    if (added) {
      Group& group = groups.emplace_back();
      for (const ProfColumn* key : keys) group.keys.push_back(key->get(row));
    }
    AddTo(row, &groups[entry->second]);
    total += row.sil;
  }
  const std::string sort = options.sort.empty() ? "sil" : options.sort;
  const GroupColumn* by = nullptr;
  for (const GroupColumn& column : kGroupColumns) {
    if (column.name == sort) by = &column;
  }
  const auto key_to_sort =
      std::find_if(keys.begin(), keys.end(), [&](const ProfColumn* key) { return key->name == sort; });
  if (by == nullptr && key_to_sort == keys.end()) {
    std::string known = options.group_by;
    for (const GroupColumn& column : kGroupColumns) absl::StrAppend(&known, ",", std::string(column.name));
    return absl::InvalidArgumentError(
        absl::StrCat("groups have no column '", sort, "' to sort by; there are ", known));
  }
  const auto key_index = static_cast<size_t>(key_to_sort - keys.begin());
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return by != nullptr ? Before(by->get(a, total), by->get(b, total))
                         : Before(a.keys[key_index], b.keys[key_index]);
  });
  if (options.limit >= 0 && groups.size() > static_cast<size_t>(options.limit)) {
    groups.resize(static_cast<size_t>(options.limit));
  }
  std::vector<std::string_view> names;
  for (const ProfColumn* key : keys) names.push_back(key->name);
  for (const GroupColumn& column : kGroupColumns) names.push_back(column.name);
  OTT_RETURN_IF_ERROR(CheckWidth(options.layout, names));
  TableWriter writer(options.layout, names, write);
  for (const Group& group : groups) {
    for (const ProfCell& key : group.keys) writer.Add(key);
    for (const GroupColumn& figure : kGroupColumns) writer.Add(figure.get(group, total));
    writer.EndRow();
  }
  return absl::OkStatus();
}

}  // namespace

bool PassesFilters(const ProfTableOptions& options, const KernelRow& row) {
  return MatchesFilter(options.op, row.op) && MatchesFilter(options.layer, row.layer) &&
         MatchesFilter(options.kernel, row.kernel) && MatchesFilter(options.phase, row.phase) &&
         (options.direction.empty() || row.dir == options.direction) &&
         (options.ranks.empty() ||
          std::find(options.ranks.begin(), options.ranks.end(), row.rank) != options.ranks.end()) &&
         static_cast<double>(row.start) >= options.begin_seconds * 1e9 &&
         (options.end_seconds < 0 || static_cast<double>(row.start) < options.end_seconds * 1e9);
}

absl::Status WriteProfTable(const KernelRows& rows, const ProfTableOptions& options,
                            const std::function<void(std::string_view)>& write) {
  if (!options.group_by.empty()) return WriteGroups(rows, options, write);
  OTT_ASSIGN_OR_RETURN(const std::vector<const ProfColumn*> columns, ParseProfColumns(options.columns));
  const ProfColumn* sort = nullptr;
  if (!options.sort.empty()) {
    OTT_ASSIGN_OR_RETURN(const std::vector<const ProfColumn*> sorts, ParseProfColumns(options.sort));
    if (sorts.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("rows are sorted by one column, and '", options.sort, "' are several"));
    }
    sort = sorts.front();
  }
  std::vector<uint32_t> order;
  const bool all = NoFilters(options);
  int64_t total = 0;
  KernelRow row;
  if (!all || sort != nullptr) {
    std::vector<ProfCell> keys;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      rows.Get(i, &row);
      if (!PassesFilters(options, row)) continue;
      total += row.sil;
      order.push_back(i);
      row.share = static_cast<double>(row.sil);  // which sorts alike; the sum is not known yet
      if (sort != nullptr) keys.push_back(sort->get(row));
    }
    if (sort != nullptr) {
      std::vector<uint32_t> by_key(order.size());
      for (uint32_t i = 0; i < by_key.size(); ++i) by_key[i] = i;
      std::stable_sort(by_key.begin(), by_key.end(),
                       [&](uint32_t a, uint32_t b) { return Before(keys[a], keys[b]); });
      for (uint32_t& position : by_key) position = order[position];
      order = std::move(by_key);
    }
  } else if (std::any_of(columns.begin(), columns.end(),
                         [](const ProfColumn* c) { return c->name == "share"; })) {
    for (size_t i = 0; i < rows.size(); ++i) {
      rows.Get(i, &row);
      total += row.sil;
    }
  }
  std::vector<std::string_view> names;
  for (const ProfColumn* column : columns) names.push_back(column->name);
  OTT_RETURN_IF_ERROR(CheckWidth(options.layout, names));
  TableWriter writer(options.layout, names, write);
  size_t count = all && sort == nullptr ? rows.size() : order.size();
  if (options.limit >= 0) count = std::min(count, static_cast<size_t>(options.limit));
  for (size_t i = 0; i < count; ++i) {
    rows.Get(order.empty() ? i : order[i], &row);
    row.share = Percent(row.sil, total);
    for (const ProfColumn* column : columns) writer.Add(column->get(row));
    writer.EndRow();
  }
  return absl::OkStatus();
}

}  // namespace ott::kernels
