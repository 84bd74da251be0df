//go:build unix

package host

import (
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// An agent may replace a file by a pipe at any moment. Without the other end of a pipe, its opening waits.
func TestPipeThatTakesThePlaceOfAFileIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(dir+"/pipe", 0o600))
	require.NoError(t, os.WriteFile(dir+"/file", []byte("x"), 0o600))
	require.NoError(t, os.Link(dir+"/file", dir+"/f"))
	f, err := openFiles(dir, dir)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{"/pipe", "/file"} {
				_ = os.Link(dir+name, dir+"/next")
				_ = os.Rename(dir+"/next", dir+"/f")
			}
		}
	})
	opened, refused := 0, 0
	for i := 0; i < 5000 || opened == 0 || refused == 0; i++ {
		flag := os.O_RDONLY
		if i%2 == 1 {
			flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		}
		got, err := f.open("f", flag)
		if err != nil {
			refused++
			continue
		}
		at, err := got.Stat()
		require.NoError(t, err)
		require.True(t, at.Mode().IsRegular())
		opened++
		require.NoError(t, got.Close())
	}
	close(stop)
	swapping.Wait()
}
