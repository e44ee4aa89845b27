#include "ott/core/base/process_wide.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Counter {
  int64_t value = 0;
};

// The answers of a shared object that a test opened; see process_wide_plugin_for_test.cc.
class Plugin {
 public:
  explicit Plugin(const std::string& name)
      : handle_(dlopen(("core/base/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }

  int64_t* counter() const { return Call<int64_t*()>("CounterOrNull")(); }
  std::string error() const { return Call<const char*()>("CounterError")(); }
  bool enabled() const { return Call<bool()>("CounterIsEnabled")(); }
  void SetEnabled(bool enabled) const { Call<void(bool)>("SetCounterEnabled")(enabled); }
  void Close() const { dlclose(handle_); }
  static bool IsLoaded(const std::string& name) {
    return dlopen(("core/base/" + name).c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  }

 private:
  template <typename Signature>
  Signature* Call(const char* symbol) const {
    return reinterpret_cast<Signature*>(dlsym(handle_, symbol));
  }

  void* handle_;
};

// The executable's own copy; the plug-ins' is of the same name.
ProcessWide<Counter> counter("ott.test.Counter");
const ProcessWide<Counter>::JoinAtLoad join_at_load(counter);

TEST(ProcessWide, CopiesOfOneNameShareOneInstanceAndOneSwitch) {
  static ProcessWide<Counter> first("ott.test.Shared");
  static ProcessWide<Counter> second("ott.test.Shared");
  static ProcessWide<Counter> other("ott.test.Other");
  EXPECT_EQ(&first.Get(), &second.Get());
  EXPECT_NE(&first.Get(), &other.Get());
  second.SetEnabled(true);
  EXPECT_EQ(first.IfEnabled(), &first.Get());
  EXPECT_EQ(other.IfEnabled(), nullptr);
}

TEST(ProcessWide, OneInstanceIsMadeWhenThreadsRaceForIt) {
  static ProcessWide<Counter> process_wide("ott.test.Raced");
  std::vector<Counter*> seen(8);
  std::vector<std::thread> threads;
  for (Counter*& mine : seen) threads.emplace_back([&mine] { mine = &process_wide.Get(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(seen, ::testing::Each(&process_wide.Get()));
}

TEST(ProcessWide, AnInstanceOfTheCallersOwnIsSeenByNobodyElse) {
  Counter own;
  ProcessWide<Counter> process_wide(&own);
  EXPECT_EQ(&process_wide.Get(), &own);
  process_wide.SetEnabled(true);
  EXPECT_EQ(process_wide.IfEnabled(), &own);
  EXPECT_EQ(counter.IfEnabled(), nullptr);
}

TEST(ProcessWide, ATypeOfAnotherSizeIsRefused) {
  struct Wider {
    int64_t values[2] = {};
  };
  static ProcessWide<Counter> counter("ott.test.Size");
  static ProcessWide<Wider> wider("ott.test.Size");
  EXPECT_NE(counter.Find(), nullptr);
  EXPECT_EQ(counter.refusal(), nullptr);
  EXPECT_EQ(wider.Find(), nullptr);
  EXPECT_THAT(std::string(wider.refusal()),
              AllOf(HasSubstr("ott.test.Size"), HasSubstr("16 bytes"), HasSubstr("8 in")));
}

TEST(ProcessWide, EnablingInOneCopySwitchesAllAndAlsoThoseLoadedLater) {
  const Plugin first("libfirst_plugin_for_test.so");
  first.SetEnabled(true);
  EXPECT_NE(counter.IfEnabled(), nullptr);
  const Plugin late("liblate_plugin_for_test.so");
  EXPECT_TRUE(late.enabled());
  late.SetEnabled(false);
  EXPECT_EQ(counter.IfEnabled(), nullptr);
  EXPECT_FALSE(first.enabled());
}

TEST(ProcessWide, APluginThatWasAlwaysOffIsUnloaded) {
  const std::string name = "liboff_plugin_for_test.so";
  const Plugin plugin(name);
  EXPECT_FALSE(plugin.enabled());
  plugin.Close();
  EXPECT_FALSE(Plugin::IsLoaded(name));
  // Reaches no copy that is gone.
  counter.SetEnabled(true);
  counter.SetEnabled(false);
  const Plugin again(name);
  EXPECT_EQ(again.counter(), &counter.Get().value);
}

TEST(ProcessWide, APluginThatUsedTheInstanceOrWasEnabledByOthersOrWhileItWasLoadedStaysLoaded) {
  for (const std::string how : {"first", "enabled", "loaded"}) {
    const std::string name = "lib" + how + "_plugin_for_test.so";
    counter.SetEnabled(how == "loaded");
    const Plugin plugin(name);
    int64_t* const used = how == "first" ? plugin.counter() : nullptr;
    if (how != "first") {
      counter.SetEnabled(true);
      EXPECT_TRUE(plugin.enabled());
      counter.SetEnabled(false);
    }
    plugin.Close();
    EXPECT_TRUE(Plugin::IsLoaded(name));
    if (used != nullptr) {
      EXPECT_EQ(plugin.counter(), used);
    }
  }
}

TEST(ProcessWide, AnotherAbiVersionOrAbseilIsRefusedNamingBoth) {
  for (const auto& [name, theirs, ours] :
       {std::tuple("libother_version_plugin_for_test.so", " has ABI version 1001",
                   "process_wide_test in the same process uses version " + std::to_string(kAbiVersion) + ";"),
        {"libother_library_plugin_for_test.so", " was built with", "process_wide_test"}}) {
    ::testing::internal::CaptureStderr();
    const Plugin other(name);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("its calls are ignored"));
    EXPECT_EQ(other.counter(), nullptr);
    EXPECT_THAT(other.error(), AllOf(HasSubstr(std::string(name) + theirs), HasSubstr(ours)));
    counter.SetEnabled(true);
    EXPECT_FALSE(other.enabled());
    counter.SetEnabled(false);
  }
  EXPECT_THAT(Plugin("libother_library_plugin_for_test.so").error(), HasSubstr("and Abseil 20991231, but"));
}

TEST(ProcessWide, AForkedChildKeepsTheInstance) {
  counter.Get().value = 17;
  const pid_t child = fork();
  if (child == 0) _exit(counter.Get().value == 17 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ott
