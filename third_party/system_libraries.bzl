"""The libraries that come from the machine under WORKSPACE and bzlmod alike, each found or not."""

load("//third_party/d3:d3.bzl", "system_d3")
load("//third_party/python:python_library.bzl", "python_library")
load(":system_library.bzl", "system_library")

def system_libraries():
    system_d3(name = "d3")
    system_library(
        name = "cuda",
        build_file = Label("//third_party/cuda:cuda.BUILD"),
        compiler = "nvcc",
        header = "cuda_runtime_api.h",
        homes = ["CUDA_HOME"],
        library = "libcudart.so",
        prefixes = ["/usr/local/cuda"],
    )
    system_library(
        name = "cupti",
        build_file = Label("//third_party/cupti:cupti.BUILD"),
        header = "cupti.h",
        homes = ["CUDA_HOME"],
        prefixes = ["/usr/local/cuda", "/usr/local/cuda/extras/CUPTI"],
    )
    system_library(
        name = "nvtx",
        build_file = Label("//third_party/nvtx:nvtx.BUILD"),
        header = "nvtx3/nvToolsExt.h",
        homes = ["NVTX_HOME", "CUDA_HOME"],
        prefixes = ["/usr/local/cuda", "/usr"],
    )
    system_library(
        name = "mpi",
        build_file = Label("//third_party/mpi:mpi.BUILD"),
        header = "mpi.h",
        homes = ["MPI_HOME"],
        library = "libmpi.so",
        # Open MPI 6 keeps a part of libmpi there.
        more_libraries = ["libopen_mpi.so"],
        pkg_config = [
            "ompi-c",
            "mpich",
        ],
        prefixes = ["/usr/lib/{multiarch}/openmpi"],
    )
    system_library(
        name = "nccl",
        build_file = Label("//third_party/nccl:nccl.BUILD"),
        cached = ["nccl/nvidia/nccl"],
        header = "nccl.h",
        homes = ["NCCL_HOME"],
        library = "libnccl.so.2",
        prefixes = ["/usr/local/cuda", "/usr"],
        single_header = True,
    )
    system_library(
        name = "torch",
        build_file = Label("//third_party/torch:torch.BUILD"),
        header = "torch/library.h",
        homes = ["TORCH_HOME"],
        library = "libtorch.so",
        more_folders = ["ATen", "c10"],
        prefixes = ["/usr"],
    )
    python_library(
        name = "python",
        build_file = Label("//third_party/python:python.BUILD"),
    )
