//go:build kafka

package kafkatest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDetachedBrokerRunsUntilItIsStopped(t *testing.T) {
	jars, err := Fetch(t.Context(), "")
	require.NoError(t, err)
	command := filepath.Join(t.TempDir(), "kafka")
	require.NoError(t, exec.Command("go", "build", "-o", command, "./kafka").Run())
	// A cache of the test's own: the one broker a user may have detached is not the test's to end.
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	root, err := cacheDir()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(jars, filepath.Join(root, filepath.Base(jars))))

	kafka := func(args ...string) (string, error) {
		cmd := exec.Command(command, args...)
		var complaint strings.Builder
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			return complaint.String(), err
		}
		return strings.TrimSpace(string(out)), nil
	}
	t.Cleanup(func() { require.NoError(t, EndDetached(context.Background())) })

	addr, err := kafka("start")
	require.NoError(t, err, addr)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	again, err := kafka("start")
	require.NoError(t, err)
	require.Equal(t, addr, again, "it is found running")
	complaint, err := kafka("start", "-nodes", "3")
	require.Error(t, err)
	require.Contains(t, complaint, "stop it first")
	complaint, err = kafka("start", "-port", "1")
	require.Error(t, err)
	require.Contains(t, complaint, "stop it first")

	for range 2 {
		out, err := kafka("stop")
		require.NoError(t, err, out)
		_, err = net.Dial("tcp", addr)
		require.Error(t, err)
	}
	require.NoDirExists(t, filepath.Join(root, "detached"))

	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	addr, err = kafka("start", "-port", port)
	require.NoError(t, err, addr)
	require.True(t, strings.HasSuffix(addr, ":"+port))
	out, err := kafka("stop")
	require.NoError(t, err, out)
}
