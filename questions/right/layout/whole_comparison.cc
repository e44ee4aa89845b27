#include "ott/questions/right/layout/whole_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/status_macros.h"
#include "ott/questions/right/layout/check_layout.h"
#include "ott/questions/right/layout/whole_reader.h"

namespace ott::crosscheck {
namespace {

constexpr int64_t kTileElements = 1 << 18;

// Replicas of a run, compared with the first one of A.
class RunComparer {
 public:
  RunComparer(const char* name, const BoundRun& run, const WholeTensor& whole, const WholeTensor& a,
              const WholeReader& expected, const std::optional<Tolerance>& tolerance)
      : name_(name), run_(run), whole_(whole), a_(a), expected_(expected), tolerance_(tolerance) {
    options_.num_threads = 1;
    options_.num_worst = 1;
    options_.compare_dtype = a.dtype_known && whole.dtype_known;
    options_.tolerance = tolerance.value_or(Tolerance());
    options_.tolerance.nan_equal = tolerance.has_value();
    options_.tolerance.bitwise = !tolerance.has_value() || whole.is_text;
  }

  absl::Status CompareReplica(const std::vector<Cell>& replica) {
    CountRanks(replica);
    for (const Cell& cell : replica) {
      OTT_ASSIGN_OR_RETURN(const WholeReader found, WholeReader::Open(run_, whole_, {&cell}));
      const int64_t before = difference_.num_mismatched();
      std::vector<int> fast_dims = found.fast_dims();
      for (const int dim : expected_.fast_dims()) {
        if (std::find(fast_dims.begin(), fast_dims.end(), dim) == fast_dims.end()) fast_dims.push_back(dim);
      }
      int64_t num_elements = 0;
      for (const Box& box : cell.boxes) {
        ForEachTile(box, fast_dims, kTileElements, [&](const Range& range) {
          num_elements += range.num_elements();
          if (a_.is_sum || whole_.is_sum) {
            CompareSums(found, range);
          } else {
            CompareTile(found, range);
          }
          found.DropPages();
          expected_.DropPages();
        });
      }
      if (difference_.num_mismatched() == before) continue;
      difference_.set_num_compared(difference_.num_compared() + num_elements);
      for (const Part& part : cell.parts) difference_.add_ranks(part.rank);
    }
    return absl::OkStatus();
  }

  // Counts the ranks of a replica that the others are compared with.
  void CountRanks(const std::vector<Cell>& replica) {
    for (const Cell& cell : replica) {
      difference_.set_num_ranks(difference_.num_ranks() + static_cast<int>(cell.parts.size()));
    }
  }

  void AddTo(WholeComparison* comparison) && {
    comparison->bitwise_equal = comparison->bitwise_equal && !any_bits_differ_;
    comparison->max_abs_error = std::max(comparison->max_abs_error, difference_.max_abs_error());
    if (difference_.num_mismatched() == 0) return;
    std::sort(difference_.mutable_ranks()->begin(), difference_.mutable_ranks()->end());
    comparison->differences.push_back(std::move(difference_));
  }

 private:
  void CompareTile(const WholeReader& found, const Range& range) {
    const int64_t count = range.num_elements();
    a_elements_.resize(count * SizeOf(a_.dtype));
    elements_.resize(count * SizeOf(whole_.dtype));
    expected_.Read(range, a_elements_.data());
    found.Read(range, elements_.data());
    const TensorView a_view(a_elements_.data(), a_.dtype, range.shape);
    const TensorView view(elements_.data(), whole_.dtype, range.shape);
    const TensorComparison comparison = CompareTensors(a_view, view, options_);
    any_bits_differ_ |= comparison.status != CompareStatus::kBitwiseEqual &&
                        !(comparison.status == CompareStatus::kEqual && !options_.compare_dtype);
    AddCounts(comparison.num_mismatched, comparison.num_bits_differ,
              comparison.max_abs_error.has_value() ? comparison.max_abs_error->error : 0);
    if (comparison.worst.empty()) return;
    const ElementDifference& worst = comparison.worst[0];
    if (!SetWorst(found, range, worst.position, worst.abs_error, worst.reference_text, worst.current_text)) {
      return;
    }
    AddBits(a_view, view, worst.position);
  }

  // The bits of one element.
  void AddBits(const TensorView& a_view, const TensorView& view, int64_t position) {
    const auto element = [position](const TensorView& of) {
      return TensorView(static_cast<const char*>(of.data()) + position * SizeOf(of.dtype()), of.dtype(), {});
    };
    const TensorComparison one = CompareTensors(element(a_view), element(view), options_);
    if (!one.first_bit_difference.has_value()) return;
    for (const int bit : one.first_bit_difference->flipped_bits) difference_.add_flipped_bits(bit);
    if (one.first_bit_difference->ulp_distance.has_value()) {
      difference_.set_ulp_distance(*one.first_bit_difference->ulp_distance);
    }
  }

  void CompareSums(const WholeReader& found, const Range& range) {
    expected_.Sum(range, &a_sums_, &a_magnitudes_);
    found.Sum(range, &sums_, &magnitudes_);
    int64_t num_mismatched = 0;
    int64_t num_different = 0;
    double max_error = 0;
    double worst_error = -1;
    size_t worst = 0;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const auto error = static_cast<double>(std::fabs(sums_[i] - a_sums_[i]));
      const bool same = sums_[i] == a_sums_[i] || (std::isnan(sums_[i]) && std::isnan(a_sums_[i]));
      num_different += !same;
      if (std::isfinite(error)) max_error = std::max(max_error, error);
      // Next to an infinity, any error would be allowed.
      if (same || (std::isfinite(error) && error <= Allowed(i, found))) continue;
      ++num_mismatched;
      const double rank = std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
      if (rank > worst_error) {
        worst_error = rank;
        worst = i;
      }
    }
    any_bits_differ_ |= num_different > 0;
    AddCounts(num_mismatched, num_different, max_error);
    if (num_mismatched == 0) return;
    const auto text = [](long double value) { return absl::StrFormat("%.9g", static_cast<double>(value)); };
    SetWorst(found, range, static_cast<int64_t>(worst), worst_error, text(a_sums_[worst]),
             text(sums_[worst]));
  }

  // Returns how far sum i may be off.
  double Allowed(size_t i, const WholeReader& found) const {
    if (tolerance_.has_value()) {
      return tolerance_->atol + tolerance_->rtol * std::fabs(static_cast<double>(a_sums_[i]));
    }
    return SumBound(a_.dtype, expected_.num_summed(), static_cast<double>(a_magnitudes_[i])) +
           SumBound(whole_.dtype, found.num_summed(), static_cast<double>(magnitudes_[i]));
  }

  void AddCounts(int64_t num_mismatched, int64_t num_bits_differ, double max_abs_error) {
    difference_.set_num_mismatched(difference_.num_mismatched() + num_mismatched);
    difference_.set_num_bits_differ(difference_.num_bits_differ() + num_bits_differ);
    difference_.set_max_abs_error(std::max(difference_.max_abs_error(), max_abs_error));
  }

  // False, and nothing done, where a worse element is known.
  bool SetWorst(const WholeReader& found, const Range& range, int64_t position, double error,
                const std::string& expected, const std::string& value) {
    if (error <= worst_error_) return false;
    worst_error_ = error;
    Dims index = IndexAt(range.shape, position);
    for (size_t dim = 0; dim < index.size(); ++dim) index[dim] += range.offset[dim];
    difference_.set_run(name_);
    difference_.clear_flipped_bits();
    difference_.clear_ulp_distance();
    *difference_.mutable_index() = {index.begin(), index.end()};
    SetPlace("a", expected_.Locate(index), expected, difference_.mutable_expected());
    SetPlace(name_, found.Locate(index), value, difference_.mutable_found());
    return true;
  }

  static void SetPlace(const char* run, const ElementPlace& from, const std::string& value, LayoutPlace* to) {
    to->set_run(run);
    *to->mutable_ranks() = {from.ranks.begin(), from.ranks.end()};
    to->set_path(from.path);
    *to->mutable_index() = {from.index.begin(), from.index.end()};
    to->set_value(value);
  }

  const char* const name_;
  const BoundRun& run_;
  const WholeTensor& whole_;
  const WholeTensor& a_;
  const WholeReader& expected_;
  const std::optional<Tolerance>& tolerance_;
  TensorCompareOptions options_;
  std::vector<char> a_elements_;
  std::vector<char> elements_;
  std::vector<long double> a_sums_;
  std::vector<long double> a_magnitudes_;
  std::vector<long double> sums_;
  std::vector<long double> magnitudes_;
  bool any_bits_differ_ = false;
  double worst_error_ = -1;
  LayoutDifference difference_;
};

std::string DescribeShape(const WholeTensor& whole) {
  return absl::StrCat(ShapeToString(whole.shape),
                      whole.extents.empty() ? "" : absl::StrCat(" (", whole.extents, ")"));
}

}  // namespace

double SumBound(DType dtype, int64_t num_parts, double magnitude) {
  const double roundoff = UnitRoundoff(dtype);
  if (roundoff == 0) return 0;
  return static_cast<double>(num_parts) * (magnitude * roundoff + SmallestPositive(dtype));
}

absl::StatusOr<WholeComparison> CompareWholes(const BoundRun& a_run, const WholeTensor& a,
                                              const BoundRun& b_run, const WholeTensor& b,
                                              const std::optional<Tolerance>& tolerance) {
  WholeComparison result;
  if (a.is_text != b.is_text || (a.is_text && a.shape != b.shape)) {
    LayoutDifference& difference = result.differences.emplace_back();
    difference.set_problem(a.is_text && b.is_text ? "the texts differ" : "one of them is a text");
    return result;
  }
  if (a.shape != b.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("a has ", DescribeShape(a), ", b ", DescribeShape(b),
                     ": parts are missing, or overlap, or the layout is another"));
  }
  const bool sums = a.is_sum || b.is_sum;
  if (!sums && a.dtype != b.dtype && a.dtype_known && b.dtype_known) {
    LayoutDifference& difference = result.differences.emplace_back();
    difference.set_problem(
        absl::StrCat("a is ", std::string(Name(a.dtype)), ", b ", std::string(Name(b.dtype))));
    return result;
  }
  std::vector<const Cell*> cells;
  for (const Cell& cell : a.replicas[0]) cells.push_back(&cell);
  OTT_ASSIGN_OR_RETURN(const WholeReader expected, WholeReader::Open(a_run, a, std::move(cells)));
  RunComparer others_of_a("a", a_run, a, a, expected, tolerance);
  others_of_a.CountRanks(a.replicas[0]);
  for (size_t i = 1; i < a.replicas.size(); ++i)
    OTT_RETURN_IF_ERROR(others_of_a.CompareReplica(a.replicas[i]));
  RunComparer of_b("b", b_run, b, a, expected, tolerance);
  for (const std::vector<Cell>& replica : b.replicas) OTT_RETURN_IF_ERROR(of_b.CompareReplica(replica));
  std::move(others_of_a).AddTo(&result);
  std::move(of_b).AddTo(&result);
  return result;
}

}  // namespace ott::crosscheck
