#include "ott/dist/comm/host_name.h"

#include <sys/utsname.h>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(HostName, IsTheMachinesNodeName) {
  utsname names;
  ASSERT_EQ(uname(&names), 0);
  EXPECT_EQ(HostName(), names.nodename);
}

}  // namespace
}  // namespace ott
