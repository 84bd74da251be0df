package host

import "syscall"

// dieWithParent has the kernel kill the process when the thread that started it ends: a host that is killed leaves none behind.
// The thread is that of spawner, which lives as long as the host.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
