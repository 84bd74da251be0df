package folder

import (
	"strconv"
	"strings"
)

// gateCall separates the parts of a gate's call.
const gateCall = "/interaction/"

// MaxGateTurn is the maximum length of the ID of a turn that waits for decisions, in bytes: a call that is longer is not valid
// in a gate. A turn with a longer ID ends when it pauses.
const MaxGateTurn = 200

// GateCall returns the call of the gate of an interaction request, for topics.GateID: {turn}/{attempt}/interaction/{index}.
// All readers of the events derive the same gate from it, before its request is written and after a restart. index is
// Interaction.Index.
func GateCall(turn string, attempt int64, index int) string {
	return turn + "/" + strconv.FormatInt(attempt, 10) + gateCall + strconv.Itoa(index)
}

// ParseGateCall returns the parts of a call that GateCall made; ok is false for other calls.
func ParseGateCall(call string) (turn string, attempt int64, index int, ok bool) {
	at := strings.LastIndex(call, gateCall)
	if at < 0 {
		return "", 0, 0, false
	}
	slash := strings.LastIndexByte(call[:at], '/')
	if slash < 0 {
		return "", 0, 0, false
	}
	turn = call[:slash]
	attempt, err := strconv.ParseInt(call[slash+1:at], 10, 64)
	n, err2 := strconv.ParseInt(call[at+len(gateCall):], 10, 32)
	if err != nil || err2 != nil || attempt < 1 || n < 0 || GateCall(turn, attempt, int(n)) != call {
		return "", 0, 0, false
	}
	return turn, attempt, int(n), true
}
