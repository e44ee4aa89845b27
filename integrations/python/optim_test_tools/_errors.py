"""The exceptions of ott: one for each code of a status, and each also the one that Python has for such a case."""


class Error(Exception):
    """Something that ott could not do; str() says what, where, and mostly the way out.

    Attributes:
        code: the name of the C++ library's status code, such as "NOT_FOUND".
    """

    code = "UNKNOWN"


class MisuseError(Error, AssertionError):
    """A call that breaks a rule of the interface, such as ending what was not started. It was ignored."""

    code = "MISUSE"


class InvalidArgumentError(Error, ValueError):
    """An argument or a file's contents are not what they must be."""

    code = "INVALID_ARGUMENT"


class FailedPreconditionError(Error, RuntimeError):
    """Not in this state, such as enabling what is enabled."""

    code = "FAILED_PRECONDITION"


class NotFoundError(Error, FileNotFoundError):
    """A file or a directory that is not there."""

    code = "NOT_FOUND"


class AlreadyExistsError(Error, ValueError):
    """Something has that place or name already."""

    code = "ALREADY_EXISTS"


class PermissionDeniedError(Error, PermissionError):
    """The system does not allow it."""

    code = "PERMISSION_DENIED"


class UnimplementedError(Error, NotImplementedError):
    """Not in this build or on this machine; the message says what is missing."""

    code = "UNIMPLEMENTED"


class DeadlineExceededError(Error, TimeoutError):
    """Other ranks did not answer in time; the message names them."""

    code = "DEADLINE_EXCEEDED"


class UnavailableError(Error, ConnectionError):
    """The connection to other ranks failed."""

    code = "UNAVAILABLE"


class ResourceExhaustedError(Error, OSError):
    """No memory, or no space on the disk."""

    code = "RESOURCE_EXHAUSTED"


class DataLossError(Error, OSError):
    """A file that was cut off, or was never finished."""

    code = "DATA_LOSS"


class AbortedError(Error, RuntimeError):
    """The run was told to end here, as by a divergence."""

    code = "ABORTED"


_BY_CODE = {
    error.code: error
    for error in (
        InvalidArgumentError,
        FailedPreconditionError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        UnimplementedError,
        DeadlineExceededError,
        UnavailableError,
        ResourceExhaustedError,
        DataLossError,
        AbortedError,
    )
}


def from_status(code: str, message: str) -> Error:
    """The exception for a status, for _ott to raise."""
    error = _BY_CODE.get(code, Error)(message)
    error.code = code
    return error
