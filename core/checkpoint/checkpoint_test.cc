// Reads what PyTorch 2.13, NumPy and safetensors wrote (testdata/make_testdata.py), and what nobody should.

#include "ott/core/checkpoint/checkpoint.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/checkpoint/checkpoint_for_test.h"
#include "core/checkpoint/torch_file_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/checkpoint/torch_objects.h"
#include "ott/core/dump/dump_for_test.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Checkpoint, FormatsOfOneModelHoldTheSameTensors) {
  const std::map<std::string, std::string> expected = AllElements(Read(Data("weights.pt")));
  EXPECT_EQ(expected.size(), 6);
  EXPECT_THAT(expected.at("0.weight"), HasSubstr("float32[3, 4]: "));
  for (const char* const name : {"weights.safetensors", "weights.npz", "weights_compressed.npz",
                                 "sharded/model.safetensors.index.json"}) {
    EXPECT_EQ(AllElements(Read(Data(name))), expected) << name;
  }
  EXPECT_EQ(AllElements(At(Read(Data("whole.pt")), "model")), expected);
  EXPECT_EQ(AllElements(At(Read(Data("sharded")), "model")), expected);
  EXPECT_EQ(AllElements(Read(Data("script.pt"))), expected);
  EXPECT_EQ(Read(Data("script.pt")).map().size(), expected.size());
  EXPECT_EQ(AllElements(Read(Data("whole.pt"))), AllElements(Read(Data("whole_legacy.pt"))));
  EXPECT_TRUE(At(Read(Data("weights.pt")), "0.weight").tensor().file_backed);
}

TEST(Checkpoint, ADistributedCheckpointIsTheStateThatWasSavedByAnyNumberOfRanks) {
  const Value whole = Read(Data("whole.pt"));
  for (const char* const name : {"dcp_1", "dcp_2"}) {
    const Value distributed = Read(Data(name));
    EXPECT_EQ(AllElements(distributed), AllElements(whole)) << name;
    EXPECT_EQ(At(distributed, "epoch").int_value(), 2);
    EXPECT_EQ(At(At(distributed, "optimizer"), "param_groups").list().size(), 1);
  }
  EXPECT_NE(At(At(Read(Data("dcp_2")), "model"), "0.weight").tensor().scattered, nullptr);
}

// Writes a file, and the folders it is in: what is in that of testdata with such a name, or these bytes.
void Put(const std::string& path, const std::string& contents) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const std::string bytes = IsRegularFile(Data(contents)) ? *ReadFile(Data(contents)) : contents;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
}

TEST(Checkpoint, FilesBesidePartsThatBelongTogetherAreReadToo) {
  const std::string dir = MakeTestDir();
  for (const char* const parts : {"dcp_2", "zero_2"}) {
    std::filesystem::copy(Data(parts), absl::StrCat(dir, "/", parts),
                          std::filesystem::copy_options::recursive);
    Put(absl::StrCat(dir, "/", parts, "/rng_state_0.pth"), "plain.pkl");
    const Checkpoint read = ReadCheckpoint(absl::StrCat(dir, "/", parts)).value();
    EXPECT_EQ(At(At(read.state, "rng_state_0"), "step").int_value(), 3) << parts;
    EXPECT_EQ(read.format, *parts == 'd' ? "a distributed checkpoint and 1 files"
                                         : "DeepSpeed ZeRO of global_step2 and 1 files");
  }
}

TEST(Checkpoint, ALinkMustNotLeadOutOfTheFolder) {
  const std::string dir = testing::TempDir() + "/links";
  const std::string snapshot = dir + "/hub/snapshots/0123";
  for (const char* const file : {"/secret.pt", "/in/weights.pt", "/hub/blobs/89ab"})
    Put(dir + file, "weights.pt");
  std::filesystem::create_directories(snapshot);
  // Names that are the same in a state, too.
  std::filesystem::create_symlink("weights.pt", dir + "/in/weights.bin");
  EXPECT_EQ(Read(dir + "/in").map().size(), 2);
  // Hugging Face's cache links from its snapshots to its blobs.
  std::filesystem::create_symlink("../../blobs/89ab", snapshot + "/model.pt");
  EXPECT_EQ(Read(snapshot).map().size(), 1);
  for (const char* const target : {"../secret.pt", "../../links"}) {
    std::filesystem::create_symlink(target, dir + "/in/out.pt");
    EXPECT_THAT(ReadCheckpoint(dir + "/in").status().message(),
                testing::AllOf(HasSubstr("links/in/out.pt: is a link to "),
                               HasSubstr("which leads out of the folder")));
    std::filesystem::remove(dir + "/in/out.pt");
  }
  // An index in the working directory, too.
  Put(dir + "/in/n.index.json", R"({"weight_map": {"x": "weights.bin"}})");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir + "/in");
  EXPECT_EQ(ReadCheckpoint("n.index.json").status().message(),
            "n.index.json: weights.bin has no 'x', as the index says");
  std::filesystem::current_path(before);
  std::filesystem::create_symlink("../secret.pt", dir + "/in/shard.safetensors");
  Put(dir + "/in/m.index.json", R"({"weight_map": {"0.weight": "shard.safetensors"}})");
  EXPECT_THAT(ReadCheckpoint(dir + "/in/m.index.json").status().message(),
              HasSubstr("which leads out of the folder"));
  std::filesystem::remove_all(dir);
}

TEST(Checkpoint, FoldersOfNumberedCheckpointsAreListed) {
  const std::string dir = MakeTestDir();
  for (const char* const name : {"checkpoint-100", "global_step20", "iter_0000300", "other_7", "epoch"})
    Put(absl::StrCat(dir, "/", name, "/state.pkl"), "plain.pkl");
  for (const char* const name : {"epoch=3-step=40.ckpt", "step_50.pt", "model-00001-of-00002.pt",
                                 "step_60.log", "rng_state_0.pth", "model_state_0.pt", "model_state_1.pt",
                                 "optim_state_1.pt", "100", "=.pt", "last.ckpt", "config.json", ".hidden.pt"})
    Put(absl::StrCat(dir, "/", name), "weights.pt");
  const std::map<int64_t, std::string> expected = {{20, dir + "/global_step20"},
                                                   {40, dir + "/epoch=3-step=40.ckpt"},
                                                   {50, dir + "/step_50.pt"},
                                                   {100, dir + "/checkpoint-100"},
                                                   {300, dir + "/iter_0000300"}};
  for (const char* const empty : {"/empty", "/step_70"}) std::filesystem::create_directories(dir + empty);
  EXPECT_EQ(ListCheckpoints(dir), expected);
  EXPECT_THAT(ListOtherCheckpoints(dir),
              ElementsAre("=.pt", "epoch", "last.ckpt", "model-00001-of-00002.pt", "model_state_0.pt",
                          "model_state_1.pt", "optim_state_1.pt", "other_7", "rng_state_0.pth"));
  Put(dir + "/step_100.pt", "weights.pt");
  EXPECT_THAT(ListCheckpoints(dir), testing::IsEmpty()) << "two of iteration 100";
}

std::string Format(const std::string& path) {
  const auto checkpoint = ReadCheckpoint(path);
  return checkpoint.ok() ? checkpoint->format : std::string(checkpoint.status().message());
}

TEST(Checkpoint, TheFormatOfAFileIsSaid) {
  for (const auto& [name, format] :
       {std::pair("weights.pt", "torch.save"),
        {"whole_legacy.pt", "torch.save, as before PyTorch 1.6"},
        {"script.pt", "TorchScript"},
        {"weights_compressed.npz", "NumPy .npz"},
        {"plain.pkl", "pickle"},
        {"weights.safetensors", "safetensors"},
        {"megatron_core_1/metadata.json", "JSON"},
        {"sharded", "a folder of 1 files"},
        {"none.pt", "core/checkpoint/testdata/none.pt: cannot open: No such file or directory"},
        {"sharded/model.safetensors.index.json", "safetensors in 2 files with an index"}})
    EXPECT_EQ(Format(Data(name)), format);
}

// Each folder has files, the format or error that is said, and the names in the state.
TEST(Checkpoint, OfAFolderEachFileIsAValueExceptThoseThatBelongTogether) {
  const std::string text = "text", dir = testing::TempDir() + "/folder", model = "mp_rank_00_model_states.pt",
                    optimizer = "zero_pp_rank_0_mp_rank_00_optim_states.pt";
  struct Folder {
    std::vector<std::pair<std::string, std::string>> files;  // and what is in them
    std::string format, names;
  };
  const std::string none = ": no checkpoint is in this folder",
                    not_joined = ": ZeRO with model parallelism or experts is not put together";
  for (const Folder& folder : std::vector<Folder>{
           {{{"a.pt", "weights.pt"}}, "a folder of 1 files", "a"},
           {{{"pytorch_model.bin", "weights.pt"},
             {"notes.txt", text},
             {"s/a.pt", "weights.pt"},
             {".h/a.pt", ""}},
            "a folder of 3 files",
            "notes.txt model s"},
           {{{"adapter_model.bin", "weights.pt"}, {"model.pt", "weights.pt"}, {"x.json", "{}"}},
            "a folder of 3 files",
            "model model' x"},
           {{{"latest", "two\r\n"},
             {"two/a.pt", "weights.pt"},
             {"one/b.pt", text},
             {"zero_to_fp32.py", text},
             {"zero_to_torch.py", text},
             {"c.pt", "weights.pt"}},
            "a folder of 1 files of two and 1 files",
            "a c"},
           {{{"latest_checkpointed_iteration.txt", "20"}, {"iter_0000020/a.pt", "weights.pt"}},
            "a folder of 1 files of iter_0000020",
            "a"},
           {{{"latest", "s/../s"}, {"s/a.pt", "weights.pt"}}, "a folder of 2 files", "latest s"},
           {{{"latest", "\n"}, {"a.pt", "weights.pt"}}, "a folder of 2 files", "a latest"},
           {{{"m.index.json", "[]"}, {"n.index.json", "{}"}}, "a folder of 2 files", "m n"},
           {{{"a_file_of_a_3_mp_rank_00_optim_states.pt", "plain.pkl"},
             {"zero_pp_rank_x_mp_rank_00_optim_states.pt", "plain.pkl"}},
            "a folder of 2 files",
            "a_file_of_a_3_mp_rank_00_optim_states zero_pp_rank_x_mp_rank_00_optim_states"},
           {{{model, "plain.pkl"}, {optimizer, "plain.pkl"}}, ": ZeRO's partitions have no param_shapes", ""},
           {{{model, "\x80\x02]."}}, none, ""},
           {{{"latest", ".s"}, {".s/a.pt", "weights.pt"}}, "a folder of 1 files", "latest"},
           {{{"latest", "a.pt"}, {"a.pt", "weights.pt"}}, "a folder of 2 files", "a latest"},
           {{{model, "plain.pkl"}, {"z.json", "{}"}}, "DeepSpeed and 1 files", "step names z"},
           {{{model, "plain.pkl"}, {"mp_rank_01_model_states.pt", "plain.pkl"}},
            "a folder of 2 files",
            "mp_rank_00_model_states mp_rank_01_model_states"},
           {{{model, "plain.pkl"}, {optimizer, "plain.pkl"}, {"mp_rank_01_x", text}}, not_joined, ""},
           {{{model, "plain.pkl"}, {optimizer, "plain.pkl"}, {"expert_1", text}}, not_joined, ""},
           {{{"a/b/c/d/e.pt", "weights.pt"}}, "/a/b/c/d: is more than 3 folders deep", ""},
           {{{"a/b/c/d.pt", "weights.pt"}}, "a folder of 1 files", "a"},
           {{{".hidden/a.pt", "weights.pt"}}, none, ""}}) {
    for (const auto& [name, contents] : folder.files) Put(dir + "/" + name, contents);
    const bool is_error = folder.names.empty();
    EXPECT_EQ(Format(dir), is_error ? dir + folder.format : folder.format);
    std::vector<std::string> names;
    const Value state = is_error ? Value(ValueMap()) : Read(dir);
    for (const auto& [name, value] : state.map()) names.push_back(name);
    EXPECT_EQ(absl::StrJoin(names, " "), folder.names);
    std::filesystem::remove_all(dir);
  }
}

TEST(Checkpoint, AFolderIsACheckpointByTheNamesInIt) {
  const std::string dir = testing::TempDir() + "/by_name";
  for (const auto& [name, is_checkpoint] : {std::pair("a.pt", true),
                                            {"config.json", false},
                                            {"m.index.json", true},
                                            {".metadata", true},
                                            {"notes.txt", false},
                                            {"folder.pt/notes.txt", false},
                                            {"a/b/c/d.pt", true},
                                            {"a/b/c/d/e.pt", false}}) {
    const std::string path = absl::StrCat(dir, "/", name);
    Put(path, "plain.pkl");
    EXPECT_EQ(IsCheckpoint(dir), is_checkpoint) << name;
    EXPECT_TRUE(IsCheckpoint(path));
    std::filesystem::remove_all(dir);
  }
  EXPECT_FALSE(IsCheckpoint(dir));
}

TEST(Checkpoint, AllValuesAreListedByPath) {
  std::string listed;
  for (const NamedTensor& named : ListValues(ValueMap{{"a", Value::List{1, "text", Value::List{2.5}}},
                                                      {"b", ValueMap{{"c", Value()}, {"d", true}}}}))
    absl::StrAppend(&listed, named.path, named.content == NamedTensor::Content::kText ? ": text" : ": ",
                    ShapeToString(named.tensor.view.shape()), " ");
  EXPECT_EQ(listed, "a.0: [] a.1: text[0] a.2.0: [] b.c: text[0] b.d: [] ");
}

TEST(Checkpoint, AttributesOfTorchScriptMayHaveLongNames) {
  const std::string name = "a_name_that_is_longer_than_that_of_attributes", path = MakeTestDir() + "/a.pt";
  const std::string module =
      "\x80\x02"
      "cm\nC\n)\x81}(" +
      TextInPickle(name) + "K\3ub.";
  Put(path, Zip({{"a/data.pkl", module}, {"a/constants.pkl", ""}}));
  EXPECT_EQ(At(Read(path), name).int_value(), 3);
}

TEST(Checkpoint, ValuesAreThoseThatWereSaved) {
  const Value values = Read(Data("values.pt"));
  const std::map<std::string, std::string> expected = {
      {"transposed", "float32[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11"},
      {"slice", "float32[3]: 2 3 4"},
      {"expanded", "float32[5]: 0 0 0 0 0"},
      {"scalar", "int64[]: 7"},
      {"empty", "float32[0, 3]:"},
      {"bfloat16", "bfloat16[12]: 0 1 2 3 4 5 6 7 8 9 10 11"},
      {"float8", "float8_e4m3fn[12]: 0 1 2 3 4 5 6 7 8 9 10 11"},
      {"uint16", "uint16[2]: 1 65535"},
      {"complex", "complex64[1]:"},
      {"bool", "bool[2]: 1 0"},
      {"parameter", "float32[2]: 0 1"},
      {"numpy", "int32[2, 3]: 0 2 4 1 3 5"},
      {"numpy_scalar", "float64[]: 2.5"},
  };
  for (const auto& [name, text] : expected) EXPECT_EQ(Elements(At(values, name)), text) << name;
  for (const char* const plain : {"uint16", "float8", "slice"})
    EXPECT_EQ(values.map().Find(absl::StrCat(plain, std::string(kAttributesEnd))), nullptr) << plain;
  EXPECT_EQ(At(values, "size").list()[1].int_value(), 3);
  EXPECT_EQ(At(values, "dtype").string_value(), "torch.float16");
  EXPECT_EQ(At(values, "1").string_value(), "one");
  EXPECT_EQ(At(values, "(a, 2)").string_value(), "pair");
  EXPECT_EQ(At(values, "set").list()[0].int_value(), 5);
  EXPECT_EQ(At(Read(Data("plain.pkl")), "step").int_value(), 3);
}

TEST(Checkpoint, WhatAPickleWouldCallIsAValueAndNotCalled) {
  const std::string evidence = "/tmp/ott_checkpoint_was_run";
  std::filesystem::remove(evidence);
  const Value calls = Read(Data("calls.pt"));
  EXPECT_EQ(At(At(calls, "calls"), kClassEntry).string_value(), "posix.system");
  EXPECT_EQ(Elements(At(calls, "weight")), "float32[2]: 1 1");
  EXPECT_FALSE(std::filesystem::exists(evidence));
}

class Hostile : public testing::Test {
 protected:
  std::string Error(const std::string& name, const std::string& bytes) {
    Put(absl::StrCat(dir_, "/", name), bytes);
    return std::string(ReadCheckpoint(absl::StrCat(dir_, "/", name)).status().message());
  }

  const std::string dir_ = MakeTestDir();
};

std::string Bytes(const std::string& name) { return *ReadFile(Data(name)); }

TEST_F(Hostile, AFileCutAnywhereIsAnErrorThatNamesIt) {
  for (const char* const name :
       {"weights.pt", "whole_legacy.pt", "weights.safetensors", "weights_compressed.npz", "plain.pkl"}) {
    const std::string whole = Bytes(name);
    for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
      EXPECT_THAT(Error("cut.pt", whole.substr(0, size)), HasSubstr("cut.pt: ")) << name << ", " << size;
    }
  }
}

// Returns a file as before PyTorch 1.6: what it says of the system, the state, the names of the storages, and
// these.
std::string Legacy(const std::string& system, const std::string& state, const std::string& keys,
                   const std::string& storages) {
  std::string file = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  for (const std::string& pickle : {std::string("M\xe9\x03"), "}(" + system + "u", state, "](" + keys + "e"})
    absl::StrAppend(&file, "\x80\x02", pickle, ".");
  return file + storages;
}

TEST_F(Hostile, FilesOfTorchSaveThatLackAPartOrHaveMoreAreErrors) {
  const std::string bytes = StorageInPickle("ShortStorage", 1), key = TextInPickle("K");
  const std::string saved = "\x80\x02" + bytes + ".",
                    other_order = "was written by a machine of another order";
  const auto legacy = [&](const std::string& keys, int64_t size, const std::string& system = "") {
    return Legacy(system, bytes, keys, InBytes(static_cast<uint64_t>(size), 8) + "ab");
  };
  const std::pair<std::string, std::string> rows[] = {
      {Zip({{"a/data.pkl", saved}, {"a/data/K", "ab"}}), ""},
      {Zip({{"a/data.pkl", "\x80\x02" + StorageInPickle("FancyStorage", 1) + "."}, {"a/data/K", "ab"}}), ""},
      {Zip({{"a/data.pkl", saved}}), "storage 'K' is not in the file"},
      {Zip({{"a/data.pkl", saved}, {"a/data/K", "a"}}), "'K' has 1 bytes, but the pickle says 2"},
      {Zip({{"a/data.pkl", saved}, {"a/data/K", "ab"}, {"a/byteorder", "big"}}), other_order},
      {Zip({{"a/data.pkl", saved}, {"b/version", "3"}}), "has 'b/version' beside its folder 'a/'"},
      {Zip({{"a/x.txt", ""}}), "a ZIP archive with 'a/x.txt': neither torch.save's nor NumPy's"},
      {Zip({{"a.npy", "x"}}), "a.npy: "},
      {legacy(key, 1), ""},
      {Legacy("", StorageInPickle("ShortStorage", 0), key, std::string(8, '\0')), ""},
      {legacy(key, 1, TextInPickle("little_endian") + "\x88"), ""},
      {legacy(key, 1, TextInPickle("little_endian") + "\x89"), other_order},
      {legacy("", 1), "storage 'K' is not in the file"},
      {Legacy("", "(K\1tQ", "", ""), "refers to something else than a storage"},
      {legacy(TextInPickle("L"), 1), "storage 'L' is of no known type"},
      {legacy(key, 0), "'K' has 0 bytes, but the pickle says 2"},
      {legacy(key, 2), ", in storage 'K'; the program was probably killed"},
      {legacy(key, -1), ", in storage 'K'; the program was probably killed"}};
  for (const auto& [file, message] : rows) {
    const std::string error = Error("a.pt", file);
    EXPECT_EQ(error.empty(), message.empty()) << error;
    EXPECT_THAT(error, HasSubstr(message));
  }
}

TEST_F(Hostile, WhatIsWrongInAFileOrAnIndexIsNamed) {
  const std::string leads_out = "', leads out of the folder", whole = Bytes("weights.safetensors");
  const auto all = [&](const std::string& file) {
    std::string map;
    for (const auto& [name, elements] : AllElements(Read(Data("weights.pt"))))
      absl::StrAppend(&map, ",\"", name, "\":\"", file, map.size() > 99 ? "" : "2", "\"");
    return "{" + map.substr(1) + "}";
  };
  for (const char* const name : {"/a.safetensors", "/a.safetensors2"}) Put(dir_ + name, whole);
  Put(dir_ + "/b.pkl", "\x80\x02).");
  for (const auto& [map, message] : std::vector<std::pair<std::string, std::string>>{
           {"3", "\"weight_map\" is no map of names to files"},
           {R"({"w": 3})", "the file of 'w' is no text"},
           {R"({"w": "b.pkl"})", "b.pkl has no tensors by name"},
           {R"({"w": "m.index.json"})", "the file of 'w', 'm.index.json', is no file of tensors"},
           {R"({"w": "a.safetensors"})", "a.safetensors has no 'w', as the index says"},
           {R"({"0.weight": "a.safetensors"})",
            "a.safetensors has '0.bias', which the index does not say: they "
            "are of different checkpoints"},
           {all("a.safetensors"),
            "a.safetensors has '0.bias', which the index does not say: they are of "
            "different checkpoints"},
           {R"({"w": "../secret.safetensors"})", "the file of 'w', '../secret.safetensors" + leads_out},
           {R"({"w": "/etc/passwd"})", "the file of 'w', '/etc/passwd" + leads_out},
           {R"({"w": ".."})", "the file of 'w', '.." + leads_out},
           {R"({"w": "a/b"})", "the file of 'w', 'a/b" + leads_out},
           {R"({"w": ""})", "the file of 'w', '" + leads_out}}) {
    EXPECT_EQ(Error("m.index.json", R"({"weight_map": )" + map + "}"), dir_ + "/m.index.json: " + message);
  }
  const std::string neither =
      "is no checkpoint: neither torch.save's, TorchScript's, safetensors, NumPy's .npz, "
      "a pickle nor JSON";
  const std::string pickle = Bytes("plain.pkl"),
                    npz = absl::StrReplaceAll(Bytes("weights.npz"), {{".npy", ".txt"}});
  for (const auto& [bytes, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "is empty"},
           {"text", neither},
           {std::string("\x80\1)."), neither},
           {std::string("\x80\6)."), neither},
           {std::string("\1\2)."), neither},
           {std::string("12345678{}"), neither},
           {std::string("1234567\0.}", 10), neither},
           {pickle + ".",
            absl::StrCat("a pickle that ends at byte ", pickle.size(), " of ", pickle.size() + 1)},
           {npz, "a ZIP archive with '0.weight.txt': neither torch.save's nor NumPy's"}}) {
    EXPECT_EQ(Error("a.pt", bytes), dir_ + "/a.pt: " + message);
  }
  EXPECT_THAT(Error("a.safetensors", "12345678text"), HasSubstr("the safetensors header claims"));
}

TEST_F(Hostile, WhatIsRepeatedWithoutEndIsAnError) {
  const auto list = [](const std::string& items) { return "\x80\x03](" + items + "e."; };
  // Each tensor repeats 4 bytes 800 million times.
  const std::string tensor =
      Call("torch._utils:_rebuild_tensor_v2",
           StorageInPickle("FloatStorage", 1) + std::string("K\0J\0\x08\xaf\x2f\x85K\0\x85\x89}", 13));
  EXPECT_EQ(Error("a.pt", Zip({{"a/data.pkl", list(tensor)}, {"a/data/K", "abcd"}})), "");
  EXPECT_THAT(Error("a.pt", Zip({{"a/data.pkl", list(tensor + tensor)}, {"a/data/K", "abcd"}})),
              HasSubstr("repeat their storages so often"));
  // The list contains itself, or each of 40 lists holds the one before ten times.
  const auto recalls = [](int times) { return absl::StrJoin(std::vector<const char*>(times, "h\x01"), ""); };
  EXPECT_THAT(Error("a.pkl", "\x80\x02]q\x01" + recalls(1) + "a."), HasSubstr("contains itself"));
  std::string lists = "\x80\x02]q\x01";
  for (int i = 0; i < 40; ++i) absl::StrAppend(&lists, "0](", recalls(10), "eq\x01");
  EXPECT_THAT(Error("b.pkl", lists + "."), HasSubstr("repeated so often"));
  // Two bytes repeat a text of a megabyte, or bytes, or a key.
  const std::string megabyte = std::string("\0\0\x10\0", 4) + std::string(size_t{1} << 20, 'a') + "q\x01";
  for (const char* const opcode : {"X", "B"}) {
    EXPECT_THAT(Error("a.pkl", list(opcode + megabyte + recalls(200))),
                HasSubstr("the texts in it are repeated so often"));
  }
  EXPECT_THAT(Error("a.pkl", "\x80\x03}(X" + megabyte + recalls(200) + "Nu."),
              HasSubstr("a key of more than 64 KiB"));
  EXPECT_THAT(Error("a.pkl", "\x80\x03}((X" + megabyte + "tNu."), HasSubstr("a key of more than 64 KiB"));
}

}  // namespace
}  // namespace ott
