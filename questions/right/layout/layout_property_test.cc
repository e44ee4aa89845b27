// Random models in random layouts: cut, renamed and put together again they are equal bit for bit, and one
// flipped bit is found at its place in the coordinates of both runs.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/tensor/value.h"
#include "ott/questions/right/crosscheck/run_for_test.h"
#include "ott/questions/right/layout/check_layout.h"
#include "ott/questions/right/layout/layout_text.h"

namespace ott::crosscheck {
namespace {

using Random = std::mt19937_64;

int Pick(Random& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1));
}

struct Model {
  struct Whole {
    std::string name;
    DType dtype;
    Dims shape;
    std::vector<char> bytes;
  };
  std::vector<Whole> wholes;
};

// The elements of whole tensors that a rank holds, each with its place there; -1: padding.
struct Held {
  std::string path;
  DType dtype;
  Dims shape;
  std::vector<char> bytes;
  std::vector<std::pair<int, int64_t>> origin;  // whole tensor, element
  bool is_compared = true;
  bool is_addend = false;
};

int64_t Flat(const Dims& shape, const Dims& index) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

// A run of data x tensor x pipeline ranks that holds a model in a random way.
class RandomRun {
 public:
  RandomRun(const Model& model, Random& random) : model_(model), random_(random) {
    data_ = Pick(random, 1, 2);
    tensor_ = Pick(random, 1, 3);
    pipeline_ = Pick(random, 1, 2);
    held_.resize(data_ * tensor_ * pipeline_);
    auto axis = [&](const char* name, int size, bool own) {
      MeshAxis& added = *layout_.mutable_mesh()->add_axes();
      added.set_name(name);
      added.set_size(size);
      added.set_own_tensors(own);
    };
    axis("data", data_, false);
    axis("tensor", tensor_, false);
    axis("pipeline", pipeline_, true);
    // Wholes 0 to 2 are queries, keys and values of one shape, and the others stand alone.
    HoldFused();
    for (size_t i = 3; i < model.wholes.size(); ++i) HoldAlone(static_cast<int>(i));
  }

  const RunLayout& layout() const { return layout_; }
  std::vector<std::vector<Held>>& held() { return held_; }

  std::string Write(const std::string& name) const {
    std::string dir = MakeRunForTest(name, static_cast<int>(held_.size()));
    for (size_t rank = 0; rank < held_.size(); ++rank) WriteRank(dir, static_cast<int>(rank));
    return dir;
  }

  void WriteRank(const std::string& dir, int rank) const {
    ValueMap tree{{"nothing", Value()}};
    for (const Held& held : held_[rank]) {
      tree.Insert(held.path, Tensor{TensorView(held.bytes.data(), held.dtype, held.shape), nullptr});
    }
    WriteTreeForTest(dir, rank, 0, tree);
  }

 private:
  int Rank(int data, int tensor, int pipeline) const {
    return (data * tensor_ + tensor) * pipeline_ + pipeline;
  }

  // Random sizes that add up.
  std::vector<int64_t> Cut(int64_t extent, int num_parts) {
    std::vector<int64_t> bounds = {0, extent};
    for (int i = 1; i < num_parts; ++i) bounds.push_back(Pick(random_, 0, static_cast<int>(extent)));
    std::sort(bounds.begin(), bounds.end());
    std::vector<int64_t> sizes;
    for (int i = 0; i < num_parts; ++i) sizes.push_back(bounds[i + 1] - bounds[i]);
    return sizes;
  }

  // A tensor of this shape, each element of which is where(index of it) of a whole tensor.
  template <typename Where>
  void Hold(int rank, const std::string& path, DType dtype, const Dims& shape, const Where& where) {
    Held held{path, dtype, shape, {}, {}};
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    const int64_t size = SizeOf(dtype);
    held.bytes.assign(count * size, 'p');
    for (int64_t i = 0; i < count; ++i) {
      const std::pair<int, int64_t> origin = where(IndexAt(shape, i));
      held.origin.push_back(origin);
      if (origin.second >= 0) {
        std::memcpy(&held.bytes[i * size], &model_.wholes[origin.first].bytes[origin.second * size], size);
      }
    }
    held_[rank].push_back(std::move(held));
  }

  // Queries, keys and values of 2 dimensions, fused along one of them in groups or not, split over heads,
  // transposed or not, and on one stage of the pipeline.
  void HoldFused() {
    const Model::Whole& query = model_.wholes[0];
    const int64_t width = query.shape[0];
    const bool grouped = Pick(random_, 0, 1) == 1;
    const bool transposed = Pick(random_, 0, 1) == 1;
    const int stage = Pick(random_, 0, pipeline_ - 1);
    constexpr int64_t kHead = 2;
    TensorRule& rule = *layout_.add_tensors();
    rule.set_path("attention.{part}");
    FusedTensors& fused = *rule.mutable_fused();
    fused.set_dim(transposed ? 1 : -2);
    if (grouped) fused.set_group(3 * kHead);
    for (int i = 0; i < 3; ++i) fused.add_sections()->set_whole(model_.wholes[i].name);
    if (transposed) {
      rule.add_transpose(1);
      rule.add_transpose(0);
    }
    Split& split = *rule.add_split();
    split.set_dim(0);
    split.set_axis("tensor");
    const std::vector<int64_t> heads = Cut(width / kHead, tensor_);
    int64_t first = 0;
    for (int tensor = 0; tensor < tensor_; ++tensor) {
      const int64_t rows = heads[tensor] * kHead;
      Dims shape = {3 * rows, query.shape[1]};
      if (transposed) std::swap(shape[0], shape[1]);
      for (int data = 0; data < data_; ++data) {
        Hold(Rank(data, tensor, stage), "attention.qkv", query.dtype, shape, [&](Dims index) {
          if (transposed) std::swap(index[0], index[1]);
          const int64_t group = grouped ? kHead : rows;
          const int64_t section = index[0] / group % 3;
          const int64_t row = index[0] / (3 * group) * group + index[0] % group;
          return std::pair(static_cast<int>(section), Flat(query.shape, {first + row, index[1]}));
        });
      }
      first += rows;
    }
  }

  // One whole tensor, in one of several ways.
  void HoldAlone(int whole) {
    const Model::Whole& tensor = model_.wholes[whole];
    const size_t num_dims = tensor.shape.size();
    TensorRule& rule = *layout_.add_tensors();
    const std::string path = absl::StrCat("renamed.", whole, ".", Pick(random_, 0, 9));
    rule.set_path(Pick(random_, 0, 1) == 1 ? path : absl::StrCat("renamed.", whole, ".{x}"));
    rule.set_whole(tensor.name);
    const bool everywhere = Pick(random_, 0, 2) == 0;
    const int stage = Pick(random_, 0, pipeline_ - 1);
    const auto stages = [&] {
      std::vector<int> of;
      for (int i = 0; i < pipeline_; ++i) {
        if (everywhere || i == stage) of.push_back(i);
      }
      return of;
    }();
    std::vector<int> order(num_dims);
    std::iota(order.begin(), order.end(), 0);
    if (Pick(random_, 0, 1) == 1) {
      std::shuffle(order.begin(), order.end(), random_);
      *rule.mutable_transpose() = {order.begin(), order.end()};
    }
    // The dimension that is split over tensor, and that over data; none: -1.
    int split_dims[2] = {-1, -1};
    for (int i = 0; i < 2 && num_dims > 0; ++i) {
      if (Pick(random_, 0, 2) == 0) continue;
      split_dims[i] = Pick(random_, 0, static_cast<int>(num_dims) - 1);
    }
    // Tensor is added first, so of one dimension it is the outer one.
    for (int i = 0; i < 2; ++i) {
      if (split_dims[i] < 0) continue;
      Split& split = *rule.add_split();
      split.set_dim(split_dims[i]);
      split.set_axis(i == 0 ? "tensor" : "data");
    }
    Dims padded = tensor.shape;
    if (num_dims > 0 && Pick(random_, 0, 3) == 0) {
      Padding& padding = *rule.add_padding();
      const int dim = Pick(random_, 0, static_cast<int>(num_dims) - 1);
      padding.set_dim(dim);
      padding.set_size(tensor.shape[dim]);
      padded[dim] += Pick(random_, 0, 3);
    }
    // One of the axes that nothing is split over may be a sum's: of integers, so that it is exact.
    int sum_axis = -1;
    if (tensor.dtype == DType::kInt32 && Pick(random_, 0, 1) == 1) {
      sum_axis = split_dims[0] < 0 ? 0 : split_dims[1] < 0 ? 1 : -1;
      if (sum_axis >= 0) rule.add_sum(sum_axis == 0 ? "tensor" : "data");
    }
    const int one_of = sum_axis != 1 && split_dims[1] < 0 && Pick(random_, 0, 3) == 0 ? 1 : -1;
    if (one_of == 1) rule.add_one_of("data");

    // By dimension, the sizes of its parts, in row-major order of the positions along tensor and data.
    std::vector<std::vector<int64_t>> sizes(num_dims);
    for (size_t dim = 0; dim < num_dims; ++dim) {
      int parts = 1;
      if (split_dims[0] == static_cast<int>(dim)) parts *= tensor_;
      if (split_dims[1] == static_cast<int>(dim)) parts *= data_;
      sizes[dim] = Cut(padded[dim], parts);
    }
    for (int data = 0; data < data_; ++data) {
      for (int position = 0; position < tensor_; ++position) {
        Dims begin;
        Dims shape;
        for (size_t dim = 0; dim < num_dims; ++dim) {
          int part = 0;
          if (split_dims[0] == static_cast<int>(dim)) part = position;
          if (split_dims[1] == static_cast<int>(dim)) part = part * data_ + data;
          begin.push_back(std::accumulate(sizes[dim].begin(), sizes[dim].begin() + part, int64_t{0}));
          shape.push_back(sizes[dim][part]);
        }
        Dims dumped(num_dims);
        for (size_t dim = 0; dim < num_dims; ++dim) dumped[order[dim]] = shape[dim];
        for (const int at : stages) {
          const int rank = Rank(data, position, at);
          Hold(rank, path, tensor.dtype, dumped, [&](const Dims& index) {
            Dims of_whole(num_dims);
            for (size_t dim = 0; dim < num_dims; ++dim) {
              of_whole[dim] = begin[dim] + index[order[dim]];
              if (of_whole[dim] >= tensor.shape[dim]) return std::pair(whole, int64_t{-1});
            }
            return std::pair(whole, Flat(tensor.shape, of_whole));
          });
          Held& held = held_[rank].back();
          held.is_compared = one_of < 0 || data == 0;
          if (!held.is_compared) std::fill(held.bytes.begin(), held.bytes.end(), 'n');
          if (sum_axis >= 0)
            MakeAddend(sum_axis == 0 ? position : data, sum_axis == 0 ? tensor_ : data_, held);
        }
      }
    }
  }

  // Addends 1, 2, ... each take their number from the first one.
  static void MakeAddend(int addend, int num_addends, Held& held) {
    held.is_addend = num_addends > 1;
    for (size_t i = 0; i < held.bytes.size(); i += sizeof(int32_t)) {
      int32_t value;
      std::memcpy(&value, &held.bytes[i], sizeof(value));
      value = addend == 0 ? value - num_addends * (num_addends - 1) / 2 : addend;
      std::memcpy(&held.bytes[i], &value, sizeof(value));
    }
  }

  const Model& model_;
  Random& random_;
  int data_, tensor_, pipeline_;
  RunLayout layout_;
  std::vector<std::vector<Held>> held_;  // by rank
};

Model MakeModel(Random& random) {
  Model model;
  const auto add = [&](DType dtype, const Dims& shape) {
    Model::Whole& whole = model.wholes.emplace_back();
    whole.name = absl::StrCat("model.", model.wholes.size() - 1);
    whole.dtype = dtype;
    whole.shape = shape;
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    whole.bytes.resize(count * SizeOf(dtype));
    // Any bits, NaN included, but integers that can be summed.
    for (char& byte : whole.bytes) byte = static_cast<char>(random());
    if (dtype == DType::kInt32) {
      for (size_t i = 3; i < whole.bytes.size(); i += 4) whole.bytes[i] = 0;
    }
  };
  const int64_t heads = 2 * Pick(random, 1, 4);
  const int64_t columns = Pick(random, 1, 5);
  for (int i = 0; i < 3; ++i) add(DType::kBFloat16, {heads, columns});
  constexpr DType kDTypes[] = {DType::kFloat32,    DType::kInt32, DType::kFloat64,
                               DType::kFloat8E4M3, DType::kInt32, DType::kComplex64};
  const int num_others = Pick(random, 3, 6);
  for (int i = 0; i < num_others; ++i) {
    Dims shape;
    const int num_dims = Pick(random, 0, 3);
    for (int dim = 0; dim < num_dims; ++dim) shape.push_back(Pick(random, 1, 6));
    add(kDTypes[Pick(random, 0, 5)], shape);
  }
  return model;
}

// Flips a bit of an element that is compared; false if there is none.
bool FlipBit(RandomRun& run, Random& random, int* rank, Held** held, int64_t* element, int* bit) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    *rank = Pick(random, 0, static_cast<int>(run.held().size()) - 1);
    std::vector<Held>& tensors = run.held()[*rank];
    if (tensors.empty()) continue;
    *held = &tensors[Pick(random, 0, static_cast<int>(tensors.size()) - 1)];
    if ((*held)->origin.empty() || !(*held)->is_compared) continue;
    *element = Pick(random, 0, static_cast<int>((*held)->origin.size()) - 1);
    if ((*held)->origin[*element].second < 0) continue;
    const int64_t size = SizeOf((*held)->dtype);
    *bit = Pick(random, 0, static_cast<int>(8 * size) - 1);
    (*held)->bytes[*element * size + *bit / 8] ^= static_cast<char>(1 << *bit % 8);
    return true;
  }
  return false;
}

class LayoutProperty : public testing::TestWithParam<int> {};

TEST_P(LayoutProperty, CutAndPutTogetherIsEqualAndFlippedBitsAreFoundAtTheirPlaces) {
  Random random(GetParam());
  const Model model = MakeModel(random);
  RandomRun runs[2] = {{model, random}, {model, random}};
  Layout layout;
  *layout.mutable_a() = runs[0].layout();
  *layout.mutable_b() = runs[1].layout();
  // Parts of seeds in one directory each.
  const std::string dirs[2] = {runs[0].Write("a"), runs[1].Write("b")};
  const auto equal = CheckLayout(dirs[0], dirs[1], layout, {}).value();
  ASSERT_EQ(equal.front().outcome(), BITWISE_EQUAL) << LayoutVerdictsToText(equal) << layout.DebugString();
  EXPECT_EQ(equal.front().num_tensors(), static_cast<int64_t>(model.wholes.size()));

  // One bit of b is flipped, or some of both.
  const bool is_one = GetParam() % 2 == 0;
  int rank = 0, bit = 0;
  Held* held = nullptr;
  int64_t element = 0;
  std::set<std::string> changed, found;
  std::set<std::tuple<int, int, const Held*, int64_t>> elements;
  for (int i = is_one ? 1 : Pick(random, 1, 3); i > 0; --i) {
    const int side = is_one ? 1 : Pick(random, 0, 1);
    ASSERT_TRUE(FlipBit(runs[side], random, &rank, &held, &element, &bit));
    // Nothing is as it was if the same bit is flipped twice.
    if (!elements.emplace(side, rank, held, element).second) return;
    runs[side].WriteRank(dirs[side], rank);
    changed.insert(model.wholes[held->origin[element].first].name);
  }
  const auto verdicts = CheckLayout(dirs[0], dirs[1], layout, {}).value();
  const LayoutVerdict& verdict = verdicts.front();
  const std::string text = LayoutVerdictsToText(verdicts);
  for (const LayoutDifference& difference : verdict.differences()) found.insert(difference.tensor());
  ASSERT_EQ(verdict.outcome(), DIFFERENT) << text;
  EXPECT_EQ(found, changed) << text;
  // Within a tolerance it is not equal bit for bit either, and only what is not finite differs.
  LayoutOptions loose;
  loose.tolerance.emplace().atol = 1e308;
  EXPECT_NE(CheckLayout(dirs[0], dirs[1], layout, loose)->front().outcome(), BITWISE_EQUAL);
  if (!is_one) return;

  const auto [whole, position] = held->origin[element];
  ASSERT_EQ(verdict.differences_size(), 1) << text;
  const LayoutDifference& difference = verdict.differences(0);
  EXPECT_EQ(difference.run(), "b");
  EXPECT_EQ(difference.num_mismatched(), 1);
  EXPECT_EQ(Dims(difference.index().begin(), difference.index().end()),
            IndexAt(model.wholes[whole].shape, position))
      << text;
  const auto& ranks = difference.found().ranks();
  EXPECT_NE(std::find(ranks.begin(), ranks.end(), rank), ranks.end()) << text << " not rank " << rank;
  EXPECT_EQ(difference.found().path(), held->path) << text;
  EXPECT_EQ(Dims(difference.found().index().begin(), difference.found().index().end()),
            IndexAt(held->shape, element))
      << text;
  // A's place holds the same element.
  const LayoutPlace& place = difference.expected();
  const std::vector<Held>& of_a = runs[0].held()[place.ranks(0)];
  const auto expected =
      std::find_if(of_a.begin(), of_a.end(), [&](const Held& of) { return of.path == place.path(); });
  ASSERT_NE(expected, of_a.end()) << text;
  EXPECT_EQ(expected->origin[Flat(expected->shape, {place.index().begin(), place.index().end()})],
            std::pair(whole, position))
      << text;
  if (!held->is_addend && !expected->is_addend) {
    EXPECT_THAT(difference.flipped_bits(), testing::ElementsAre(bit)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LayoutProperty, testing::Range(0, 120));

}  // namespace
}  // namespace ott::crosscheck
