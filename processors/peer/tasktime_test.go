package peer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A turn that waits less would tell the model that the tool failed, while the peer still works on the task.
func TestTurnWaitsLongerThanATaskTakesByDefault(t *testing.T) {
	const toolTimeout = 5 * time.Minute // the default of turn.Config.ToolTimeout
	config := newHarness(t).config
	require.Less(t, config.TaskTime+config.Lease, toolTimeout)
}
