//go:build kafka && linux

package kafkatest

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBrokerStopsWithItsTestBinary(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), childEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	dir := lines.Text()
	require.DirExists(t, dir)
	node, err := readOwner(dir)
	require.NoError(t, err)
	addr := (&port{number: node.port}).addr()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return !isLocked(dir) }, time.Minute, 20*time.Millisecond)
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)

	cluster := filepath.Dir(dir)
	sweep(filepath.Dir(cluster), time.Now().Add(2*sweepAge))
	require.NoDirExists(t, cluster, "a later start removes what it left")
}
