#include "integrations/python/convert.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/dlpack.h"
#include "ott/core/tensor/dtype.h"

namespace ott::python {
namespace {

namespace py = pybind11;

// The place of an object in the tree, for messages: either a name or an index below `outer`.
struct Where {
  const Where* outer;
  std::string_view name;
  Py_ssize_t index = -1;

  std::string Text() const {
    const std::string above = outer == nullptr ? "" : outer->Text();
    const std::string own = index >= 0 ? std::to_string(index) : std::string(name);
    return above.empty() ? own : own.empty() ? above : absl::StrCat(above, ".", own);
  }
};

std::string Describe(const Where& where) {
  const std::string text = where.Text();
  return text.empty() ? "the data" : absl::StrCat("'", text, "'");
}

[[noreturn]] void ThrowTypeError(const Where& where, std::string_view reason) {
  throw py::type_error(absl::StrCat(Describe(where), ": ", std::string(reason)));
}

std::string TypeName(py::handle object) {
  const py::handle type = py::type::handle_of(object);
  return absl::StrCat(py::str(type.attr("__module__")).cast<std::string>(), ".",
                      py::str(type.attr("__qualname__")).cast<std::string>());
}

// Lets go of a Python object from any thread; at the end of the process it is left alone.
struct ReleaseObject {
  void operator()(const void* object) const {
    if (!PythonRuns()) return;
    WithGil([object] { Py_DECREF(static_cast<PyObject*>(const_cast<void*>(object))); });
  }
};

std::shared_ptr<const void> Own(py::object object) {
  return {static_cast<const void*>(object.release().ptr()), ReleaseObject()};
}

std::shared_ptr<const void> OwnBuffer(const Py_buffer& buffer) {
  return {new Py_buffer(buffer), [](const Py_buffer* owned) {
            if (!PythonRuns()) return;
            WithGil([owned] { PyBuffer_Release(const_cast<Py_buffer*>(owned)); });
            delete owned;
          }};
}

// The dtype of a format of Python's struct module, with sizes as the exporter has them.
std::optional<DType> DTypeOfFormat(std::string_view format, Py_ssize_t size) {
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<')) format.remove_prefix(1);
  if (!format.empty() && (format[0] == '>' || format[0] == '!')) {
    if (size != 1) return std::nullopt;
    format.remove_prefix(1);
  }
  std::string_view kind;
  if (format == "?") {
    kind = "bool";
  } else if (format == "e" || format == "f" || format == "d") {
    kind = "float";
  } else if (format == "Zf" || format == "Zd") {
    kind = "complex";
  } else if (format.size() == 1 && std::strchr("bhilqn", format[0]) != nullptr) {
    kind = "int";
  } else if (format.size() == 1 && std::strchr("BHILQN", format[0]) != nullptr) {
    kind = "uint";
  } else {
    return std::nullopt;
  }
  const std::string name = kind == "bool" ? "bool" : absl::StrCat(std::string(kind), 8 * size);
  const absl::StatusOr<DType> dtype = ParseDType(name);
  if (!dtype.ok() || SizeOf(*dtype) != size) return std::nullopt;
  return *dtype;
}

Tensor FromBuffer(py::handle object, const Where& where) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_RECORDS_RO) != 0) {
    py::error_already_set error;
    ThrowTypeError(where, absl::StrCat("no tensor can be read from ", TypeName(object), ": ", error.what()));
  }
  std::shared_ptr<const void> owner = OwnBuffer(buffer);
  const std::string format = buffer.format == nullptr ? "B" : buffer.format;
  const std::optional<DType> dtype = DTypeOfFormat(format, buffer.itemsize);
  if (!dtype.has_value()) {
    ThrowTypeError(where, absl::StrCat("elements of format '", format, "' and ", buffer.itemsize,
                                       " bytes have no dtype here; convert them first, as by "
                                       "array.astype('float64')"));
  }
  const Dims shape(buffer.shape, buffer.shape + buffer.ndim);
  const int64_t num_bytes = Check(CheckedNumBytes(*dtype, shape));
  Dims strides;
  bool aligned = reinterpret_cast<uintptr_t>(buffer.buf) % static_cast<uintptr_t>(buffer.itemsize) == 0;
  for (int i = 0; i < buffer.ndim; ++i) {
    aligned = aligned && buffer.strides[i] % buffer.itemsize == 0;
    strides.push_back(buffer.strides[i] / buffer.itemsize);
  }
  if (aligned) return Tensor{TensorView(buffer.buf, *dtype, shape, strides), std::move(owner)};
  // Elements between others, as of a field of a structured array, are no tensor's.
  const std::shared_ptr<void> copy = Check(AllocateHost(num_bytes));
  if (PyBuffer_ToContiguous(copy.get(), &buffer, buffer.len, 'C') != 0) throw py::error_already_set();
  return Tensor{TensorView(copy.get(), *dtype, shape), copy};
}

Tensor FromCapsule(py::handle capsule, void* stream) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    void* const managed = PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned");
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    return Check(FromDLPack(static_cast<dlpack::ManagedTensorVersioned*>(managed), stream));
  }
  if (!PyCapsule_IsValid(capsule.ptr(), "dltensor"))
    throw py::type_error("its __dlpack__() returned no tensor");
  void* const managed = PyCapsule_GetPointer(capsule.ptr(), "dltensor");
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return Check(FromDLPack(static_cast<dlpack::ManagedTensor*>(managed), stream));
}

// Makes the tensor that optim_test_tools/_tensors.py describes: (address, dtype, shape, strides, CUDA device
// or -1, stream).
Tensor FromDescription(const py::tuple& description, py::handle object) {
  const auto address = description[0].cast<uintptr_t>();
  const DType dtype = Check(ParseDType(description[1].cast<std::string>()));
  Dims shape;
  for (const py::handle extent : description[2]) shape.push_back(extent.cast<int64_t>());
  Dims strides;
  for (const py::handle stride : description[3]) strides.push_back(stride.cast<int64_t>());
  Check(CheckedNumBytes(dtype, shape).status());
  if (strides.size() != shape.size()) throw py::value_error("a tensor with other strides than dimensions");
  Device device;
  if (const int ordinal = description[4].cast<int>(); ordinal >= 0) {
    device = {Device::Kind::kCuda, ordinal, reinterpret_cast<void*>(description[5].cast<uintptr_t>())};
  }
  return Tensor{TensorView(reinterpret_cast<const void*>(address), dtype, shape, strides, device),
                Own(py::reinterpret_borrow<py::object>(object))};
}

Value From(py::handle object, const Where& where);

std::string KeyText(py::handle key, const Where& where) {
  // Writes keys as json.dump does.
  if (PyUnicode_Check(key.ptr())) return Text(key, "a name in a dict");
  if (key.is_none()) return "null";
  if (PyBool_Check(key.ptr())) return key.ptr() == Py_True ? "true" : "false";
  if (PyLong_Check(key.ptr()) || PyFloat_Check(key.ptr())) return py::repr(key).cast<std::string>();
  ThrowTypeError(where, absl::StrCat("a name in a dict is of type ", TypeName(key), ", not str"));
}

Value FromDict(py::handle object, const Where& where) {
  ValueMap map;
  // A list of its own, since what follows may run code that changes the dict.
  const auto items = py::reinterpret_steal<py::list>(PyDict_Items(object.ptr()));
  if (!items) throw py::error_already_set();
  for (const py::handle item : items) {
    const py::handle key = PyTuple_GET_ITEM(item.ptr(), 0);
    std::string name = KeyText(key, where);
    Value value = From(PyTuple_GET_ITEM(item.ptr(), 1), {&where, name});
    if (map.Insert(name, std::move(value)) == nullptr) {
      throw py::value_error(absl::StrCat(Describe(where), ": two names are '", name, "' in JSON"));
    }
  }
  return map;
}

Value FromSequence(py::handle object, const Where& where) {
  Value::List list;
  const auto items = py::reinterpret_steal<py::tuple>(PySequence_Tuple(object.ptr()));
  if (!items) throw py::error_already_set();
  list.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    list.push_back(From(items[i], {&where, {}, static_cast<Py_ssize_t>(i)}));
  }
  return list;
}

Value FromInt(py::handle object, const Where& where) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (value == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (overflow == 0) return Value(int64_t{value});
  if (overflow > 0) {
    const uint64_t large = PyLong_AsUnsignedLongLong(object.ptr());
    if (PyErr_Occurred() == nullptr) return Check(CloneToHost(TensorView(&large, {})));
    PyErr_Clear();
  }
  PyErr_SetString(
      PyExc_OverflowError,
      absl::StrCat(Describe(where), ": an integer beyond 64 bits; dump it as text, by str()").c_str());
  throw py::error_already_set();
}

Value FromOther(py::handle object, const Where& where) {
  if (py::isinstance<Tensor>(object)) return object.cast<const Tensor&>();
  const py::object exported = [&] {
    try {
      return py::module_::import("optim_test_tools._tensors").attr("export")(object);
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
      const std::string message =
          absl::StrCat(Describe(where), ": ", py::str(error.value()).cast<std::string>());
      if (error.matches(PyExc_TypeError)) throw py::type_error(message);
      throw py::value_error(message);
    }
  }();
  const std::string how = exported[py::int_(0)].cast<std::string>();
  const py::object what = exported[py::int_(1)];
  if (how == "description") return FromDescription(what, exported[py::int_(2)]);
  if (how == "dlpack") {
    return FromCapsule(what, reinterpret_cast<void*>(exported[py::int_(2)].cast<uintptr_t>()));
  }
  if (how == "buffer") return FromBuffer(what, where);
  if (what.is(object)) ThrowTypeError(where, absl::StrCat("nothing is known of ", TypeName(object)));
  return From(what, where);
}

Value From(py::handle object, const Where& where) {
  PyObject* const raw = object.ptr();
  if (raw == Py_None) return Value();
  if (PyBool_Check(raw)) return Value(raw == Py_True);
  if (PyLong_Check(raw)) return FromInt(object, where);
  if (PyFloat_CheckExact(raw)) return Value(PyFloat_AS_DOUBLE(raw));
  if (PyUnicode_Check(raw)) return Value(Text(object, Describe(where).c_str()));
  if (Py_EnterRecursiveCall(" while the tree of data is read; does a list or a dict hold itself?") != 0) {
    throw py::error_already_set();
  }
  struct Leave {
    ~Leave() { Py_LeaveRecursiveCall(); }
  } const leave;
  if (PyDict_Check(raw)) return FromDict(object, where);
  if (PyList_Check(raw) || PyTuple_Check(raw)) return FromSequence(object, where);
  return FromOther(object, where);
}

// Python's names of element types: those that have none are handed out as integers of their size, and
// optim_test_tools/_tensors.py makes of them what they are.
std::string BufferFormat(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "d";
    case DType::kFloat32:
      return "f";
    case DType::kFloat16:
      return "e";
    case DType::kInt8:
      return "b";
    case DType::kInt16:
      return "h";
    case DType::kInt32:
      return "i";
    case DType::kInt64:
      return "q";
    case DType::kUInt32:
      return "I";
    case DType::kUInt64:
      return "Q";
    case DType::kBool:
      return "?";
    case DType::kComplex64:
      return "Zf";
    case DType::kComplex128:
      return "Zd";
    case DType::kUInt16:
    case DType::kBFloat16:
      return "H";
    case DType::kUInt8:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return "B";
  }
  return "B";
}

py::buffer_info BufferOf(const Tensor& tensor) {
  const TensorView& view = tensor.view;
  const int64_t size = SizeOf(view.dtype());
  std::vector<py::ssize_t> strides;
  for (const int64_t stride : view.strides()) strides.push_back(stride * size);
  return py::buffer_info(const_cast<void*>(view.data()), size, BufferFormat(view.dtype()),
                         static_cast<py::ssize_t>(view.shape().size()),
                         std::vector<py::ssize_t>(view.shape().begin(), view.shape().end()), strides,
                         /*readonly=*/true);
}

}  // namespace

std::string Text(py::handle object, const char* what) {
  if (!PyUnicode_Check(object.ptr())) {
    throw py::type_error(absl::StrCat(what, " is of type ", TypeName(object), ", not str"));
  }
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    throw py::value_error(absl::StrCat(what, " has surrogates, which are not UTF-8; replace them, as by ",
                                       "text.encode('utf-8', 'backslashreplace').decode()"));
  }
  return std::string(text, static_cast<size_t>(size));
}

Value FromPython(py::handle object, const std::string& path) { return From(object, {nullptr, path}); }

py::object ToPython(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return py::none();
    case Value::Kind::kBool:
      return py::bool_(value.bool_value());
    case Value::Kind::kInt:
      return py::int_(value.int_value());
    case Value::Kind::kDouble:
      return py::float_(value.double_value());
    case Value::Kind::kString:
      return ToPythonText(value.string_value());
    case Value::Kind::kList: {
      py::list list;
      for (const Value& item : value.list()) list.append(ToPython(item));
      return list;
    }
    case Value::Kind::kMap: {
      py::dict dict;
      for (const auto& [name, child] : value.map()) dict[ToPythonText(name)] = ToPython(child);
      return dict;
    }
    case Value::Kind::kTensor:
      return py::cast(value.tensor());
    case Value::Kind::kObject:
      break;
  }
  return py::none();
}

py::object SourceOf(const Tensor& tensor) {
  if (std::get_deleter<ReleaseObject>(tensor.owner) == nullptr) return py::none();
  return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(tensor.owner.get())));
}

void DefineTensor(py::module_& module) {
  py::class_<Tensor>(module, "Tensor", py::buffer_protocol(),
                     "Elements in host memory, read by the buffer protocol; see ott.load_dump().")
      .def_buffer(&BufferOf)
      .def_property_readonly("dtype",
                             [](const Tensor& tensor) { return std::string(Name(tensor.view.dtype())); })
      .def_property_readonly("dtype_known", [](const Tensor& tensor) { return tensor.dtype_known; })
      .def_property_readonly("shape", [](const Tensor& tensor) {
        py::tuple shape(tensor.view.shape().size());
        for (size_t i = 0; i < shape.size(); ++i) shape[i] = tensor.view.shape()[i];
        return shape;
      });
}

}  // namespace ott::python
