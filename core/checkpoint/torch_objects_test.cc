#include "ott/core/checkpoint/torch_objects.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/checkpoint/checkpoint_for_test.h"
#include "core/checkpoint/torch_file_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/pickle/pickle.h"

namespace ott {
namespace {

// Returns the values of a pickle, with the elements of tensors. A storage "K" has the bytes 1 to 8.
std::string Unpickled(const std::string& pickle) {
  alignas(8) static constexpr char kStorage[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::string whole = "\x80\x03" + pickle + ".";
  const absl::StatusOr<Pickle> parsed = ParsePickle(whole);
  if (!parsed.ok()) return std::string(parsed.status().message());
  const absl::StatusOr<Value> value =
      ToValue(*parsed, [](std::string_view key, std::optional<int64_t> size) -> absl::StatusOr<HeldBytes> {
        if (key != "K") return absl::NotFoundError("no storage");
        return HeldBytes{{kStorage, size.value_or(8) > 8 ? 0 : sizeof(kStorage)}, nullptr};
      });
  if (!value.ok()) return std::string(value.status().message());
  const std::function<std::string(const Value&)> text_of = [&](const Value& of) -> std::string {
    if (of.is_tensor()) return "<" + Elements(of) + ">";
    if (!of.is_map() && !of.is_list()) return *ToJson(of);
    std::string text;
    if (of.is_list())
      for (const Value& item : of.list()) absl::StrAppend(&text, text.empty() ? "" : ", ", text_of(item));
    if (of.is_map())
      for (const auto& [name, child] : of.map())
        absl::StrAppend(&text, text.empty() ? "" : ", ", name, "=", text_of(child));
    return (of.is_list() ? "[" : "{") + text + (of.is_list() ? "]" : "}");
  };
  return text_of(*value);
}

TEST(TorchObjects, ObjectsThatAreKnownAreTheirValuesAndOthersSayTheirClass) {
  const auto map = [](const std::string& entries) { return "}(" + entries + "u"; };
  const std::string two = "(K\1K\2t", ordered = "collections:OrderedDict";
  // Elements [1, 3) of a storage of bytes, as a tensor of two.
  const auto tensor = [&](const std::string& more, const std::string& name = "_rebuild_tensor_v2",
                          const std::string& sizes = "(K\2t(K\1t") {
    return Call("torch._utils:" + name, StorageInPickle("ByteStorage", 8) + "K\1" + sizes + more);
  };
  const std::string elements = "<uint8[2]: 2 3>",
                    bytes = Call("_codecs:encode", TextInPickle("a\xc3\xbf") + TextInPickle("latin1"));
  const std::string dtype = Call("numpy:dtype", TextInPickle("i2")) + "(K\3" + TextInPickle("<") + "NNNtb",
                    byte_dtype =
                        Call("numpy:dtype", TextInPickle("u1")) + "(K\3" + TextInPickle("|") + "NNNtb",
                    big_dtype =
                        Call("numpy:dtype", TextInPickle("i2")) + "(K\3" + TextInPickle(">") + "NNNtb";
  const auto array = [&](const std::string& type, const std::string& order, const std::string& data) {
    return Call("numpy.core.multiarray:_reconstruct", "") + "(K\1(K\2K\2t" + type + order + data + "tb";
  };
  const std::pair<std::string, std::string> rows[] = {
      {"]" + two + "a", "[[1, 2]]"},
      {map(TextInPickle("1") + "NK\1\x88\x89NNK\2"), "{1=null, 1#1=true, False=null, None=2}"},
      {map("\x88K\1" + two + "K\2"), "{True=1, (1, 2)=2}"},
      {map(BytesInPickle("b\n") + "K\1"), "{b'b\\n'=1}"},
      {map(std::string("G\x3f\xe0\0\0\0\0\0\0K\1", 11)), "{0.5=1}"},
      {"(" + BytesInPickle("ab") + bytes + "t", "[<uint8[2]: 97 98>, <uint8[2]: 97 255>]"},
      {Call("_codecs:encode", TextInPickle("\xe2\x82\xac"
                                           "a") +
                                  TextInPickle("latin1")),
       "{__class__=\"_codecs.encode\", args=[\"\\u20aca\", \"latin1\"]}"},
      {Call(ordered, map(TextInPickle("a") + "K\1")), "{a=1}"},
      {Call(ordered, "](](K\1K\2ee"), "{args=[[[1, 2]]]}"},
      {Call("builtins:dict", map(TextInPickle("a") + "K\1")), "{a=1}"},
      {Call("collections:Counter", map(TextInPickle("a") + "K\1")), "{a=1}"},
      {Call("collections:defaultdict", "cbuiltins\nint\n") + "(" + TextInPickle("a") + "K\1u", "{a=1}"},
      {Call("m:C", map(TextInPickle("a") + "K\1")), "{__class__=\"m.C\", args=[{a=1}]}"},
      {Call("m:C", "") + map(TextInPickle("a") + "K\1") + "b", "{__class__=\"m.C\", a=1}"},
      {Call("m:C", "") + "(" + map(TextInPickle("a") + "K\1") + map(TextInPickle("s") + "K\2") + "tb",
       "{__class__=\"m.C\", a=1, s=2}"},
      {Call("m:C", "") + "(N" + map(TextInPickle("s") + "K\2") + "tb", "{__class__=\"m.C\", s=2}"},
      {Call("m:C", "") + two + "b", "{__class__=\"m.C\", state=[1, 2]}"},
      {Call("m:C", "") + "(N}}tb", "{__class__=\"m.C\", state=[null, {}, {}]}"},
      {Call("m:C", "") + "(K\1K\2e", "{__class__=\"m.C\", items=[1, 2]}"},
      {Call("builtins:set", "](K\2K\1e"), "[1, 2]"},
      {Call("__builtin__:frozenset", "](K\2K\1e"), "[1, 2]"},
      {Call("__builtin__:set", "](K\2K\1e"), "[1, 2]"},
      {Call("builtins:frozenset", "](K\2K\1e"), "[1, 2]"},
      {Call("builtins:set", "") + "(K\2K\1e", "[1, 2]"},
      {Call("builtins:bytes", ""), "<uint8[0]:>"},
      {Call("builtins:bytes", "](K\1e"), "{__class__=\"builtins.bytes\", args=[[1]]}"},
      {Call("__builtin__:bytes", ""), "<uint8[0]:>"},
      {Call("torch:Size", two), "[1, 2]"},
      {Call("torch:Size", ""), "{__class__=\"torch.Size\"}"},
      {Call("torch:device", TextInPickle("cuda") + "K\1"), "\"cuda:1\""},
      {Call("torch:device", TextInPickle("cpu")), "\"cpu\""},
      {StorageInPickle("ShortStorage", 4), "<int16[4]: 513 1027 1541 2055>"},
      {StorageInPickle("QInt8Storage", 8),
       "{__class__=\"torch.QInt8Storage\", bytes=<uint8[8]: 1 2 3 4 5 6 7 8>}"},
      // The file has not as many bytes, if they are known.
      {StorageInPickle("QInt8Storage", 9), "{__class__=\"torch.QInt8Storage\", bytes=<uint8[0]:>}"},
      {StorageInPickle("QInt32Storage", 3), "{__class__=\"torch.QInt32Storage\", bytes=<uint8[0]:>}"},
      {StorageInPickle("FancyStorage", 9),
       "{__class__=\"torch.FancyStorage\", bytes=<uint8[8]: 1 2 3 4 5 6 7 8>}"},
      {StorageInPickle("UntypedStorage", 8), "<uint8[8]: 1 2 3 4 5 6 7 8>"},
      {StorageInPickle("Storage", 8), "<uint8[8]: 1 2 3 4 5 6 7 8>"},
      {"(" + TextInPickle("other") + "K\1" + TextInPickle("K") + "K\1K\1tQ",
       "'': refers to something else than a storage"},
      {tensor(""), elements},
      {tensor("\x89"), elements},
      {tensor("", "_rebuild_tensor"), elements},
      {tensor("\x88"), "{value=" + elements + ",  (attributes)={requires_grad=true}}"},
      {Call("m:C", tensor("\x88")),
       "{__class__=\"m.C\", args=[" + elements + "], args.0 (attributes)={requires_grad=true}}"},
      {tensor("", "_rebuild_tensor_v2", "(K\2t(K\7t"),
       "'': a tensor of [2] uint8 at element 1 reaches out of its storage of 8 bytes"},
      {tensor("", "_rebuild_tensor_v2", "(NtJ\xff\xff\xff\xff\x85"),
       "{__class__=\"torch._utils._rebuild_tensor_v2\", args=[<uint8[8]: 1 2 3 4 5 6 7 8>, 1, [null], "
       "[-1]]}"},
      {tensor("", "_rebuild_tensor_v2", std::string("(K\0t(K\1t", 8)), "<uint8[0]:>"},
      {tensor("", "_rebuild_tensor_v2", std::string("(K\2K\0t(K\10K\1t", 12)), "<uint8[2, 0]:>"},
      {tensor("", "_rebuild_tensor_v2", Call("torch:Size", "(K\2t") + "(K\1t"), elements},
      {tensor("\x89N"
              "ctorch\nint16\n",
              "_rebuild_tensor_v3"),
       "<int16[2]: 1027 1541>"},
      {Call("torch._utils:_rebuild_tensor_v3",
            StorageInPickle("QInt8Storage", 8) + "K\1))\x89Nctorch\nint16\n"),
       "{__class__=\"torch._utils._rebuild_tensor_v3\", args=[{__class__=\"torch.QInt8Storage\", "
       "bytes=<uint8[8]: 1 2 3 4 5 6 7 8>}, 1, [], [], false, null, \"torch.int16\"]}"},
      {map(TextInPickle("a") + tensor("\x89N" + map(TextInPickle("conj") + "\x88"))),
       "{a=" + elements + ", a (attributes)={conj=true}}"},
      {map(TextInPickle("a") + Call("torch._utils:_rebuild_parameter", tensor("\x88") + "\x88N")),
       "{a=" + elements + ", a (attributes)={requires_grad=true}}"},
      {map(TextInPickle("a") + Call("torch.nn.parameter:Parameter", tensor("") + "\x89")),
       "{a=" + elements + ", a (attributes)={requires_grad=false}}"},
      {Call("torch.nn.parameter:Buffer", tensor("")), elements},
      {Call("torch.nn.parameter:Buffer", ""), "{__class__=\"torch.nn.parameter.Buffer\"}"},
      {map(TextInPickle("a") + Call("torch.nn.parameter:Parameter", "K\1\x89")), "{a=1}"},
      {map(TextInPickle("z") + tensor("\x88") + TextInPickle("m") + map(TextInPickle("a") + tensor("\x88"))),
       "{z=" + elements + ", m={a=" + elements +
           ", a (attributes)={requires_grad=true}}, z (attributes)={requires_grad=true}}"},
      {map(TextInPickle("a") +
           Call("torch._utils:_rebuild_parameter_with_state",
                tensor("") + "\x88N" + map(TextInPickle("tp") + "K\1" + TextInPickle("_metadata") + "K\2"))),
       "{a=" + elements + ", a (attributes)={tp=1}}"},
      {map(TextInPickle("a") +
           Call("torch._tensor:_rebuild_from_type_v2",
                "ctorch._utils\n_rebuild_tensor_v2\ncm\nMine\n(" + StorageInPickle("ByteStorage", 8) +
                    "K\1(K\2t(K\1t\x89t" + map(TextInPickle("x") + "K\1"))),
       "{a=" + elements + ", a (attributes)={__class__=\"m.Mine\", x=1}}"},
      {Call("torch._utils:_rebuild_parameter_with_state", tensor("") + "\x88N"), elements},
      {Call("torch._utils:_rebuild_parameter_with_state", tensor("") + "\x88NN"), elements},
      {Call("torch._tensor:_rebuild_from_type_v2", "cbuiltins\nset\ncm\nMine\n)"), "[]"},
      {Call("torch._tensor:_rebuild_from_type_v2",
            "ctorch.nn.parameter\nBuffer\ncm\nMine\n" + Call("m:C", "K\1")),
       "{__class__=\"torch._tensor._rebuild_from_type_v2\", args=[\"torch.nn.parameter.Buffer\", \"m.Mine\", "
       "{__class__=\"m.C\", args=[1]}]}"},
      {Call("torch._tensor:_rebuild_from_type_v2", "ctorch\nSize\ncm\nMine\n((K\1tt"), "[1]"},
      {Call("numpy.core.multiarray:scalar", dtype + BytesInPickle("\1\2")), "<int16[]: 513>"},
      {Call("numpy.core.multiarray:scalar", byte_dtype + BytesInPickle("\7")), "<uint8[]: 7>"},
      {array(dtype, "\x89", BytesInPickle("\1\2\3\4\5\6\7\10")), "<int16[2, 2]: 513 1027 1541 2055>"},
      {array(byte_dtype, "\x88", BytesInPickle("\1\2\3\4")), "<uint8[2, 2]: 1 3 2 4>"},
      {array(dtype, "\x89", BytesInPickle("\1\2\3\4\5\6")),
       "'': a tensor of [2, 2] int16 at element 0 reaches out of its storage of 6 bytes"}};
  for (const auto& [pickle, expected] : rows) {
    EXPECT_EQ(Unpickled(pickle), expected);
    // A damaged one is refused with a reason, or read as something.
    for (size_t at = 0; at < pickle.size(); ++at) {
      for (const char other : {'N', ')', '}', ']', '\x88', '\1'}) {
        std::string damaged = pickle;
        damaged[at] = other;
        EXPECT_FALSE(Unpickled(damaged).empty());
      }
    }
  }
  for (const std::string& key_and_size :
       {std::string("K\1NK\1"), TextInPickle("K") + "N", TextInPickle("K") + "NN",
        TextInPickle("K") + "NJ\xff\xff\xff\xff"}) {
    EXPECT_EQ(Unpickled("(" + TextInPickle("storage") + "ctorch\nByteStorage\n" + key_and_size + "tQ"),
              "'': refers to something else than a storage");
  }
  const std::string shape = "(K\1(K\1t", one_byte = BytesInPickle("\1");
  for (const std::string& state :
       {std::string(), std::string("Nb"), std::string("}b"), shape + byte_dtype + "\x89tb",
        shape + byte_dtype + "\x89Ntb", shape + "N\x89" + one_byte + "tb",
        shape + byte_dtype + "\x89" + TextInPickle("_codecs.encode") + "tb",
        shape + byte_dtype + "\x89" + one_byte + "Ntb"}) {
    EXPECT_THAT(Unpickled(Call("numpy.core.multiarray:_reconstruct", "") + state),
                testing::StartsWith("{__class__=\"numpy.core.multiarray._reconstruct\""));
  }
  for (const std::string& other : {tensor("\x89Ncm\nint16\n", "_rebuild_tensor_v3"),
                                   tensor("", "_rebuild_tensor_v2", Call("m:Size", "(K\2t") + "(K\1t"),
                                   tensor("", "_rebuild_tensor_v2", "(Nt(K\1t")})
    EXPECT_THAT(Unpickled(other), testing::StartsWith("{__class__="));
  for (const std::string& other :
       {big_dtype, Call("numpy:dtype", TextInPickle("i2")) + Call("numpy:dtype", "") + "b",
        absl::StrReplaceAll(dtype, {{"dtype", "other"}})})
    EXPECT_THAT(Unpickled(Call("numpy.core.multiarray:scalar", other + BytesInPickle("\1\2"))),
                testing::HasSubstr("{__class__=\"numpy.core.multiarray.scalar\", "));
}

TEST(TorchObjects, CallsWithoutAnArgumentOrWithNoneInsteadSayTheirClass) {
  const std::string dtype = Call("numpy:dtype", TextInPickle("i2")) + "(K\3" + TextInPickle("<") + "NNNtb";
  const std::string tensor = "torch._utils:_rebuild_tensor_v2", bytes = StorageInPickle("ByteStorage", 8);
  const std::pair<std::string, std::vector<std::string>> calls[] = {
      {tensor, {bytes, "K\1", "(K\2t", "(K\1t"}},
      {"_codecs:encode", {TextInPickle("a"), TextInPickle("latin1")}},
      {"numpy.core.multiarray:scalar", {dtype, BytesInPickle("\1\2")}},
      {"torch._tensor:_rebuild_from_type_v2",
       {"ctorch._utils\n_rebuild_tensor_v2\n", "ctorch\nTensor\n", "(" + bytes + "K\1(K\2t(K\1tt"}}};
  for (const auto& [name, arguments] : calls) {
    const std::string is_unknown = "{__class__=\"" + absl::StrReplaceAll(name, {{":", "."}}) + "\"";
    EXPECT_THAT(Unpickled(Call(name, absl::StrJoin(arguments, ""))), testing::StartsWith("<")) << name;
    const size_t colon = name.find(':');
    for (const std::string& other : {"m" + name.substr(colon), name.substr(0, colon) + ":f"}) {
      EXPECT_THAT(Unpickled(Call(other, absl::StrJoin(arguments, ""))), testing::StartsWith("{__class__=\""))
          << other;
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      std::vector<std::string> others = arguments;
      const bool is_class = arguments.size() == 3 && i == 1, is_encoding = name[0] == '_' && i == 1;
      for (const char* const other : {"N", ")"}) {
        others[i] = other;
        EXPECT_THAT(Unpickled(Call(name, absl::StrJoin(others, ""))),
                    testing::StartsWith(is_class || is_encoding ? "<" : is_unknown))
            << name << " " << i;
      }
      others.resize(i);
      EXPECT_THAT(Unpickled(Call(name, absl::StrJoin(others, ""))), testing::StartsWith(is_unknown)) << i;
    }
  }
}

}  // namespace
}  // namespace ott
