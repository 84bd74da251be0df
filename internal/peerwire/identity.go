package peerwire

import (
	"encoding/hex"
	"strings"

	"github.com/turntable-streams/turntable/internal/digests"
)

// TaskKey returns the key under which a receiver stores a task: a digest of the label of the dispatcher's token and the task
// ID. The same task ID under another label is another task.
func TaskKey(inboundID, taskID string) string { return digest("peer task", inboundID, taskID) }

// maxLabel is the largest part of a label in a session ID, in bytes.
const maxLabel = 32

// SessionID returns the session in which a receiver runs a task: "peer:", the readable part of the label, and a digest of
// label and task ID, which makes it different for different tasks.
func SessionID(inboundID, taskID string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, inboundID)
	label = strings.ReplaceAll(label, "--", "-_") // which would make it the session of a sub-agent
	return "peer:" + label[:min(len(label), maxLabel)] + ":" + digest("peer session", inboundID, taskID)
}

func digest(domain string, parts ...string) string {
	d := digests.Of(domain, parts...)
	return hex.EncodeToString(d[:])
}
