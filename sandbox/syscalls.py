"""The system calls a run may make. Built with libseccomp, once, in the zygote.

The default answer is ENOSYS, on which libraries fall back; what people plausibly try answers EPERM, so that
Python raises PermissionError; a foreign architecture (x32, int 0x80) kills. SECURITY.md gives the reason for
every entry of `ALLOWED` and `ALLOWED_WITH_ARGUMENTS`, and a test compares the two.
"""

import ctypes
import errno
import os
import struct
import termios

ALLOWED = """
    read readv write writev pread64 close lseek fstat newfstatat statx getdents64 readlink readlinkat
    access faccessat getcwd chdir fchdir umask
    munmap mremap msync brk
    set_robust_list rseq exit exit_group sched_yield
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack pause
    restart_syscall alarm setitimer getitimer gettimeofday time nanosleep
    getpid gettid getppid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp times getrusage getrandom uname sysinfo
    poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
    eventfd2 pipe pipe2 dup dup2 dup3
    shutdown getsockname
""".split()

ALLOWED_WITH_ARGUMENTS = """
    clone openat mmap mprotect madvise fadvise64 futex ioctl fcntl prlimit64 tgkill socketpair sendto recvfrom
    getsockopt getpgid getsid getpriority sched_getaffinity clock_gettime clock_getres clock_nanosleep
""".split()

REFUSED = """
    socket connect bind listen accept accept4 setsockopt sendmsg recvmsg sendmmsg recvmmsg
    execve execveat fork vfork kill tkill rt_sigqueueinfo rt_tgsigqueueinfo ptrace
    process_vm_readv process_vm_writev process_madvise pidfd_open pidfd_getfd pidfd_send_signal kcmp
    open creat unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir link linkat symlink symlinkat
    chmod fchmod fchmodat chown fchown lchown fchownat mknod mknodat truncate ftruncate fallocate
    utime utimes futimesat utimensat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr flock
    name_to_handle_at open_by_handle_at memfd_create
    shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semctl semtimedop mq_open mq_unlink
    unshare setns mount umount2 pivot_root chroot move_mount open_tree fsopen fsmount fsconfig mount_setattr
    setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset
    setpgid setsid setpriority sched_setaffinity sched_setscheduler sched_setparam sched_setattr setrlimit
    personality prctl keyctl add_key request_key bpf perf_event_open userfaultfd
    io_uring_setup io_uring_enter io_uring_register io_setup
    syslog reboot swapon swapoff init_module finit_module delete_module kexec_load acct sethostname
    setdomainname settimeofday clock_settime adjtimex clock_adjtime quotactl fanotify_init inotify_init
    inotify_init1 iopl ioperm modify_ldt landlock_create_ruleset landlock_add_rule landlock_restrict_self
    seccomp
""".split()

# Exactly what glibc's pthread_create passes: a new thread of this process, and nothing else.
PTHREAD_CLONE_FLAGS = 0x003D0F00
OPEN_FLAGS_REFUSED = [
    os.O_WRONLY,
    os.O_RDWR,
    os.O_CREAT,
    os.O_TRUNC,
    os.O_APPEND,
    os.O_PATH,
    0o20000000,  # __O_TMPFILE: os.O_TMPFILE includes O_DIRECTORY, which is allowed
]
FCNTL_COMMANDS = [0, 1, 2, 3, 1030]  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
F_SETFL = 4
SETFL_FLAGS_REFUSED = 0o20000 | 0o40000 | 0o1000000  # O_ASYNC, O_DIRECT, O_NOATIME
IOCTL_REQUESTS = [
    termios.TCGETS if hasattr(termios, "TCGETS") else 0x5401,
    termios.TIOCGWINSZ,
    termios.FIONREAD,
    termios.FIOCLEX,
    termios.FIONCLEX,
    termios.FIONBIO,
]
PROT_WRITE, PROT_EXEC, MAP_ANONYMOUS = 2, 4, 0x20
AF_UNIX = 1
# Advice that concerns this process's memory alone; others drop shared pages from the cache or merge equal ones.
MADVISE_ADVICE = [0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17]
FADVISE_DONTNEED = 4
# With FUTEX_PRIVATE_FLAG any operation; without it, on memory that another run may share, only waiting, which is
# how a thread is joined. The clock flag may be set.
FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME = 128, 256
FUTEX_WAITS = [0, 9]  # FUTEX_WAIT, FUTEX_WAIT_BITSET
SOL_SOCKET = 1
SOCKET_OPTIONS_READABLE = [3, 4, 7, 8, 30, 38, 39]  # TYPE, ERROR, SNDBUF, RCVBUF, ACCEPTCONN, PROTOCOL, DOMAIN
MSG_OOB = 1
LOW_32_BITS = 0xFFFFFFFF
# Stands for the process's own id until `for_process` replaces it. No real process id is this large.
OWN_PROCESS = 0x5EC0FFEE

ACTION_ALLOW = 0x7FFF0000
ACTION_KILL_PROCESS = 0x80000000


def action_errno(number: int) -> int:
    return 0x00050000 | number


# Comparisons of libseccomp's scmp_compare.
NOT_EQUAL, LESS, EQUAL, MASKED_EQUAL = 1, 2, 4, 7


class ArgumentCompare(ctypes.Structure):
    """scmp_arg_cmp: argument number, comparison, and its operands."""

    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def equal(argument: int, value: int) -> ArgumentCompare:
    return ArgumentCompare(argument, EQUAL, value, 0)


def equal32(argument: int, value: int) -> ArgumentCompare:
    """For arguments that the kernel takes as 32 bits, whatever the upper half of the register holds."""
    return ArgumentCompare(argument, MASKED_EQUAL, LOW_32_BITS, value)


def bits(argument: int, mask: int, value: int) -> ArgumentCompare:
    return ArgumentCompare(argument, MASKED_EQUAL, mask, value)


class SyscallFilter:
    """The compiled filter. Raises OSError when libseccomp refuses a rule."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libseccomp.so.2")
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.seccomp_init(action_errno(errno.ENOSYS)))
        if not self._context:
            raise OSError(errno.EINVAL, "libseccomp: seccomp_init failed")
        for name in ALLOWED:
            self._add(ACTION_ALLOW, name)
        for name in REFUSED:
            self._add(action_errno(errno.EPERM), name)
        self._add_rules_on_arguments()
        self._program = self._export()
        self._library.seccomp_release(self._context)
        magic = struct.pack("<I", OWN_PROCESS)
        self._own_process_at = [
            at for at in range(4, len(self._program), 8) if self._program[at : at + 4] == magic
        ]
        if not self._own_process_at:
            raise OSError(errno.EINVAL, "libseccomp: the rule on the own process id is missing")

    def for_process(self, process_id: int) -> tuple[ctypes.Array, int]:
        """The filter for one process: a buffer, and its length in instructions."""
        program = ctypes.create_string_buffer(self._program, len(self._program))
        for at in self._own_process_at:
            struct.pack_into("<I", program, at, process_id)
        return program, len(self._program) // 8

    def _add_rules_on_arguments(self) -> None:
        allow, refuse = ACTION_ALLOW, action_errno(errno.EPERM)
        flags = ArgumentCompare(0, NOT_EQUAL, PTHREAD_CLONE_FLAGS, 0)
        self._add(allow, "clone", equal(0, PTHREAD_CLONE_FLAGS))
        self._add(refuse, "clone", flags)
        every_bit = 0
        for bit in OPEN_FLAGS_REFUSED:
            every_bit |= bit
            self._add(refuse, "openat", bits(2, bit, bit))
        self._add(allow, "openat", bits(2, every_bit, 0))
        self._add(allow, "mmap", bits(2, PROT_EXEC, 0))
        executable = bits(2, PROT_EXEC | PROT_WRITE, PROT_EXEC)
        self._add(allow, "mmap", executable, bits(3, MAP_ANONYMOUS, 0))
        self._add(refuse, "mmap", executable, bits(3, MAP_ANONYMOUS, MAP_ANONYMOUS))
        self._add(refuse, "mmap", bits(2, PROT_EXEC | PROT_WRITE, PROT_EXEC | PROT_WRITE))
        self._add(allow, "mprotect", bits(2, PROT_EXEC, 0))
        self._add(refuse, "mprotect", bits(2, PROT_EXEC, PROT_EXEC))
        for request in IOCTL_REQUESTS:
            self._add(allow, "ioctl", equal32(1, request))
        for command in FCNTL_COMMANDS:
            self._add(allow, "fcntl", equal32(1, command))
        self._add(allow, "fcntl", equal32(1, F_SETFL), bits(2, SETFL_FLAGS_REFUSED, 0))
        self._add(allow, "prlimit64", equal32(0, 0))
        self._add(refuse, "prlimit64", ArgumentCompare(0, NOT_EQUAL, 0, 0))
        self._add(allow, "tgkill", equal32(0, OWN_PROCESS))
        self._add(allow, "sched_getaffinity", equal32(0, 0))
        self._add(allow, "socketpair", equal32(0, AF_UNIX))
        self._add(refuse, "socketpair", ArgumentCompare(0, NOT_EQUAL, AF_UNIX, 0))
        # No address, so nobody but the other end of a pair; out-of-band data is a part of the kernel that nobody needs.
        self._add(allow, "sendto", bits(3, MSG_OOB, 0), equal(4, 0))
        self._add(allow, "recvfrom", bits(3, MSG_OOB, 0))
        for option in SOCKET_OPTIONS_READABLE:
            self._add(allow, "getsockopt", equal32(1, SOL_SOCKET), equal32(2, option))
        for advice in MADVISE_ADVICE:
            self._add(allow, "madvise", equal32(2, advice))
        self._add(allow, "fadvise64", ArgumentCompare(3, NOT_EQUAL, FADVISE_DONTNEED, 0))
        self._add(allow, "futex", bits(1, FUTEX_PRIVATE_FLAG, FUTEX_PRIVATE_FLAG))
        for operation in FUTEX_WAITS:
            self._add(allow, "futex", bits(1, LOW_32_BITS ^ FUTEX_CLOCK_REALTIME, operation))
        for name in ("getpgid", "getsid"):
            self._add(allow, name, equal32(0, 0))
        self._add(allow, "getpriority", equal32(1, 0))
        # A clock id with the sign bit is another process's CPU clock.
        for name in ("clock_gettime", "clock_getres", "clock_nanosleep"):
            self._add(allow, name, bits(0, 0x80000000, 0))

    def _add(self, action: int, name: str, *comparisons: ArgumentCompare) -> None:
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            # Unknown to this libseccomp: the default answers ENOSYS, which is a refusal too.
            if action == ACTION_ALLOW:
                raise OSError(errno.EINVAL, f"libseccomp does not know the system call {name}")
            return
        array = (ArgumentCompare * max(1, len(comparisons)))(*comparisons)
        result = self._library.seccomp_rule_add_array(
            self._context, ctypes.c_uint32(action), number, len(comparisons), array
        )
        if result != 0:
            raise OSError(-result, f"libseccomp refuses the rule on {name}")

    def _export(self) -> bytes:
        badarch, optimize = 2, 8
        for attribute, value in ((badarch, ACTION_KILL_PROCESS), (optimize, 2)):
            result = self._library.seccomp_attr_set(self._context, attribute, ctypes.c_uint32(value))
            if result != 0:
                raise OSError(-result, f"libseccomp refuses attribute {attribute}")
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        result = self._library.seccomp_export_bpf(self._context, writer)
        os.close(writer)
        program = os.read(reader, 1 << 16)
        os.close(reader)
        if result != 0 or not program or len(program) % 8:
            raise OSError(-result, "libseccomp: the filter cannot be exported")
        return program
