#include "ott/core/dumper/converters.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Point {
  double x = 0;
  double y = 0;
};
struct Box {
  Point min;
  Point max;
};
struct Scene {
  std::vector<Box> boxes;
};
struct Node {
  std::vector<Node> children;
};
struct Ping {};
struct Pong {};

TEST(Converters, AreAppliedUntilOnlyKnownTypesRemain) {
  Converters converters;
  converters.Register<Scene>([](const Scene& scene) { return Value::From(scene.boxes); });
  converters.Register<Box>([](const Box& box) {
    return ValueMap{{"min", Value::Object(box.min)}, {"max", Value::Object(box.max)}};
  });
  converters.Register<Point>([](const Point& point) { return Value::List{point.x, point.y}; });
  const Value tree = ValueMap{{"scene", Value::Object(Scene{{{{1, 2}, {3, 4}}}})}, {"other", 7}};
  const Value converted = converters.Apply("", tree).value();
  const ValueMap& box = converted.map().Find("scene")->list()[0].map();
  EXPECT_EQ(box.Find("min")->list()[1].double_value(), 2);
  EXPECT_EQ(box.Find("max")->list()[0].double_value(), 3);
  EXPECT_EQ(converted.map().Find("other")->int_value(), 7);
}

TEST(Converters, TheLastOneOfATypeCountsAndErrorsHaveThePath) {
  Converters converters;
  const auto apply = [&] { return converters.Apply("a", Value::List{Value::Object(Point())}); };
  EXPECT_THAT(std::string(apply().status().message()),
              AllOf(HasSubstr("'a.0': there is no converter for the type ott::"), HasSubstr("::Point")));
  converters.Register<Point>(
      [](const Point&) -> absl::StatusOr<Value> { return absl::DataLossError("no y"); });
  EXPECT_EQ(apply().status(), absl::DataLossError("'a.0': no y"));
  converters.Register<Point>([](const Point&) { return 2; });
  EXPECT_EQ(apply()->list()[0].int_value(), 2);
}

TEST(Converters, ObjectsWithinObjectsOfTheirTypeAreNoCycle) {
  Converters converters;
  converters.Register<Node>([](const Node& node) { return Value::From(node.children); });
  Node chain;
  for (int depth = 1; depth <= 101; ++depth) {
    EXPECT_EQ(converters.Apply("", Value::Object(chain)).ok(), depth <= 100) << depth;
    chain = Node{{std::move(chain)}};
  }
  // Beside each other there may be any number.
  const Node wide{{Node{std::vector<Node>(150)}, Node()}};
  EXPECT_EQ(converters.Apply("", Value::Object(wide))->list()[0].list().size(), 150u);
}

TEST(Converters, CyclesAreErrors) {
  Converters converters;
  converters.Register<Ping>([](const Ping&) { return Value::Object(Pong()); });
  converters.Register<Pong>([](const Pong&) {
    return Value::List{Value::Object(Ping()), Value::Object(Ping())};
  });
  const absl::Status status = converters.Apply("a", Value::Object(Ping())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("conversions do not end"));
  EXPECT_THAT(std::string(status.message()), testing::ContainsRegex("Pong to ott::.*::Ping"));
}

}  // namespace
}  // namespace ott
