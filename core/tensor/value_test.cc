#include "ott/core/tensor/value.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Value, EachCppTypeHasItsKind) {
  const float number = 1;
  EXPECT_EQ(Value().kind(), Value::Kind::kNull);
  EXPECT_EQ(Value(true).kind(), Value::Kind::kBool);
  EXPECT_EQ(Value(7).int_value(), 7);
  EXPECT_EQ(Value(uint32_t{7}).int_value(), 7);
  EXPECT_EQ(Value(0.5).double_value(), 0.5);
  EXPECT_EQ(Value(0.5f).double_value(), 0.5);
  EXPECT_EQ(Value("text").string_value(), "text");
  EXPECT_EQ(Value(std::string_view("text")).string_value(), "text");
  EXPECT_EQ(Value(Value::List{1, "a"}).list().size(), 2u);
  EXPECT_EQ(Value(ValueMap{{"a", 1}}).map().size(), 1u);
  EXPECT_EQ(Value(TensorView(&number, {})).tensor().view.data(), &number);
}

TEST(Value, EmptyMapsAndListsCostNoMoreThanOtherValues) { EXPECT_LE(sizeof(Value), 5 * sizeof(void*)); }

TEST(Value, AMapFindsItsNamesInTheOrderOfInsertionAndTakesNoneTwice) {
  ValueMap map;
  for (int i = 999; i >= 0; --i) EXPECT_NE(map.Insert(std::to_string(i), i), nullptr);
  EXPECT_EQ(map.Insert("999", 0), nullptr);
  const ValueMap copy = map;
  const ValueMap moved = std::move(map);
  for (const ValueMap* of : {&copy, &moved}) {
    int64_t next = 999;
    for (const auto& [name, value] : *of) {
      EXPECT_EQ(value.int_value(), next);
      EXPECT_EQ(of->Find(std::to_string(next--)), &value);
    }
    EXPECT_EQ(next, -1);
    EXPECT_EQ(of->Find("1000"), nullptr);
  }
}

TEST(Value, OtherTypesAreObjectsAndVectorsLists) {
  struct Box {
    int size;
  };
  const Value object = Value::From(Box{3});
  ASSERT_EQ(object.kind(), Value::Kind::kObject);
  EXPECT_EQ(object.object().type, TypeId::Of<Box>());
  EXPECT_EQ(static_cast<const Box*>(object.object().data.get())->size, 3);
  const Value list = Value::From(std::vector<std::vector<double>>{{1, 2}, {}});
  EXPECT_EQ(list.list()[0].list()[1].double_value(), 2);
  EXPECT_EQ(Value::From(std::vector<bool>{true}).list()[0].kind(), Value::Kind::kBool);
  EXPECT_EQ(Value::From(std::vector<Box>{{1}, {2}}).list()[1].kind(), Value::Kind::kObject);
  EXPECT_EQ(Value::From("text").string_value(), "text");
  // Not a bool.
  EXPECT_EQ(Value::From(static_cast<const Box*>(nullptr)).kind(), Value::Kind::kObject);
}

TEST(Value, TensorsAreListedInOrderWithTheirPaths) {
  const float data[4] = {};
  const TensorView view(data, {4});
  const Value root = ValueMap{
      {"weights", ValueMap{{"w2", view}, {"w1", view}}},
      {"loss", 0.5},
      {"a", Value::List{view, "text", Value::List{view}}},
  };
  std::vector<std::string> paths;
  for (const NamedTensor& named : ListTensors(root)) paths.push_back(named.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"weights.w2", "weights.w1", "a.0", "a.2.0"}));
  EXPECT_EQ(ConcatenatePaths("a.2", "0.b") + ConcatenatePaths("a", "") + ConcatenatePaths("", "b"),
            "a.2.0.bab");
}

TEST(Value, SnapshotDoesNotChangeWithTheOriginal) {
  float data[2] = {1, 2};
  const Value snapshot = Snapshot(ValueMap{{"a", Value::List{TensorView(data, {2}), 3}}}).value();
  data[0] = 9;
  const Value::List& list = snapshot.map().Find("a")->list();
  EXPECT_EQ(static_cast<const float*>(list[0].tensor().view.data())[0], 1);
  EXPECT_EQ(list[1].int_value(), 3);
}

TEST(TypeId, IsEqualForOneTypeAlone) {
  struct Local {};
  EXPECT_EQ(TypeId::Of<std::vector<Local>>(), TypeId::Of<std::vector<Local>>());
  EXPECT_FALSE(TypeId::Of<Local>() == TypeId::Of<std::vector<Local>>());
  EXPECT_EQ(TypeId::Of<int>().name(), "int");
  EXPECT_EQ(Value::Object(Local()).object().type, TypeId::Of<Local>());
}

}  // namespace
}  // namespace ott
