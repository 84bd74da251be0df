package examples

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOperatorSavesMovesAndRestoresAStoppedAgent(t *testing.T) {
	t.Parallel()
	o := operate(t, nil)
	o.say("s-done", "hello", "")
	o.eventually("sessions", func(list []any) bool { return len(list) == 1 }, "sessions")
	dir := filepath.Join(t.TempDir(), "backup")
	_, said := o.run(1, "backup", dir)
	require.Contains(t, said, "stop all processes of the agent")
	o.stop()

	saved := o.object("backup", dir)
	require.Positive(t, saved["records"])
	_, said = o.run(1, "backup", dir)
	require.Contains(t, said, "name a new directory")
	_, said = o.run(1, "restore", dir)
	require.Contains(t, said, "nothing was written")
	_, said = o.run(1, "repartition", "5")
	require.Contains(t, said, "not confirmed")
	o.object("repartition", "5", "--yes")
	topics, ok := o.object("topics")["topics"].([]any)
	require.True(t, ok)
	require.EqualValues(t, 5, topics[0].(map[string]any)["partitions"])
	out, _ := o.run(0, "sessions")
	require.Contains(t, out, "s-done")
	o.run(0, "repartition", "5", "--undo") // there is nothing to undo
	o.run(2, "repartition")
}
