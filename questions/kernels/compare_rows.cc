#include "ott/questions/kernels/compare_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"

namespace ott::kernels {
namespace {

struct Sum {
  double nanoseconds = 0;
  double count = 0;
};

// By what is compared: base, current.
using Sums = std::map<std::string, std::pair<Sum, Sum>>;

std::string OpOf(const KernelRow& row) {
  const std::string op(row.op.empty() ? "-" : row.op);
  return row.dir == "bprop" ? op + " (backward)" : op;
}

std::string Time(double nanoseconds) { return FormatSeconds(nanoseconds * 1e-9); }

std::string Change(const Sum& base, const Sum& current) {
  if (base.count == 0) return "new";
  if (current.count == 0) return "gone";
  return base.nanoseconds > 0 ? absl::StrFormat("%.3f", current.nanoseconds / base.nanoseconds) : "-";
}

std::string Signed(double nanoseconds) {
  return absl::StrCat(nanoseconds < 0 ? "-" : "+", Time(std::abs(nanoseconds)));
}

std::string FormatSums(const std::string& what, const Sums& sums, size_t limit) {
  std::vector<const Sums::value_type*> order;
  for (const auto& entry : sums) order.push_back(&entry);
  const auto effect = [](const Sums::value_type* entry) {
    return std::abs(entry->second.second.nanoseconds - entry->second.first.nanoseconds);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return effect(a) > effect(b); });
  TextTable table({what, "change", "before", "after", "ratio", "calls before", "after"});
  for (size_t i = 0; i < std::min(limit, order.size()); ++i) {
    const auto& [base, current] = order[i]->second;
    table.AddRow({order[i]->first, Signed(current.nanoseconds - base.nanoseconds), Time(base.nanoseconds),
                  Time(current.nanoseconds), Change(base, current), absl::StrFormat("%.6g", base.count),
                  absl::StrFormat("%.6g", current.count)});
  }
  std::string text = table.ToString();
  if (order.size() > limit) {
    double rest = 0;
    for (size_t i = limit; i < order.size(); ++i)
      rest += order[i]->second.second.nanoseconds - order[i]->second.first.nanoseconds;
    absl::StrAppend(&text, "and ", order.size() - limit, " more: ", Signed(rest), "\n");
  }
  return text;
}

}  // namespace

std::string CompareRows(const ComparedRows& current, const ComparedRows& base,
                        const ProfTableOptions& options, size_t limit) {
  const bool tells_steps = current.num_steps > 0 && base.num_steps > 0;
  // A part of the time has fewer steps.
  const bool by_step =
      tells_steps && options.phase.empty() && options.begin_seconds <= 0 && options.end_seconds < 0;
  Sums ops, kernels;
  std::pair<Sum, Sum> all;
  const auto add_to = [](double nanoseconds, double weight, Sum* sum) {
    sum->nanoseconds += nanoseconds * weight;
    sum->count += weight;
  };
  const auto add = [&](const ComparedRows& from, Sum std::pair<Sum, Sum>::*side) {
    const double weight = by_step ? 1 / static_cast<double>(from.num_steps) : 1;
    KernelRow row;
    for (size_t i = 0; i < from.rows->size(); ++i) {
      from.rows->Get(i, &row);
      if (!PassesFilters(options, row)) continue;
      const auto time = static_cast<double>(row.sil);
      const std::string op = OpOf(row);
      add_to(time, weight, &(ops[op].*side));
      add_to(time, weight, &(kernels[absl::StrCat(op, ": ", std::string(row.kernel))].*side));
      add_to(time, weight, &(all.*side));
    }
  };
  add(base, &std::pair<Sum, Sum>::first);
  add(current, &std::pair<Sum, Sum>::second);
  if (all.first.count + all.second.count == 0) return "no kernels pass the filters\n";
  std::string text = absl::StrCat("kernels, copies and memsets: ", Time(all.first.nanoseconds), " before, ",
                                  Time(all.second.nanoseconds), " after, ",
                                  Signed(all.second.nanoseconds - all.first.nanoseconds));
  if (by_step) {
    absl::StrAppend(&text, ", a step (of ", base.num_steps, " and ", current.num_steps, ")");
  } else if (!tells_steps && current.num_steps != base.num_steps) {
    absl::StrAppend(&text, "; only one of them tells its steps (ProfilerStep#), so these are sums of each");
  }
  return absl::StrCat(text, "\n\n", FormatSums("op", ops, limit), "\n",
                      FormatSums("op: kernel", kernels, limit));
}

}  // namespace ott::kernels
