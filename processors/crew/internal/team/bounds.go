package team

import (
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/truncate"
)

// Bounds of what a row keeps, in bytes unless they count. Agents get texts in full: only the row's copies are cut.
const (
	maxID         = 128
	maxName       = 200
	maxPath       = 512
	maxRolePrompt = 64 << 10
	maxKept       = 400 // of a text that a row keeps
	maxKeptEnded  = 200 // of the task of an agent that has ended
	maxShown      = 16_000

	maxEndedMembers = 50 // agents that have ended
	maxDelegations  = 100
	maxDecisions    = 40
	maxTasks        = 200
	maxTaskBytes    = 48 << 10 // of all tasks
	maxActivities   = 200
	maxHolds        = 50
	maxAgentTimers  = 20
	maxTimerBytes   = 24 << 10 // of all timers
	maxLockBytes    = 16 << 10 // of all locks that the crew shows
)

// kept is a text as a row keeps it.
func kept(text string, max int) string { return truncate.Text(text, max) }

// shown is a text as people see it in an event.
func shown(text string) string { return truncate.Marked(text, maxShown) }

// size returns the encoded size of messages.
func size[M proto.Message](list []M) (n int) {
	for _, m := range list {
		n += proto.Size(m) + 4
	}
	return n
}
