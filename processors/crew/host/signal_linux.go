package host

import "syscall"

// dieWithParent has the kernel kill the process when the thread that started it ends, even if the watcher of its group was
// killed. It does not reach what the process has started. The thread is that of spawner, which lives as long as the host.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
