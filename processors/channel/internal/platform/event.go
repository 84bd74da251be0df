package platform

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// The beginnings of the data of buttons; the gate's ID follows.
const (
	approve = "approve:"
	deny    = "deny:"
)

// ButtonData returns the data of the two buttons of an Ask. ok is false if there is no Ask, or data has more than limit bytes: the
// text says how to answer without buttons.
func ButtonData(ask *adapter.Ask, limit int) (approved, denied string, ok bool) {
	if ask == nil || len(approve)+len(ask.GateID) > limit {
		return "", "", false
	}
	return approve + ask.GateID, deny + ask.GateID, true
}

// DecisionOf returns what the data of a pressed button says, nil if it is not of ButtonData.
func DecisionOf(data string) *adapter.Decision {
	for prefix, approved := range map[string]bool{approve: true, deny: false} {
		if gate, ok := strings.CutPrefix(data, prefix); ok && gate != "" {
			return &adapter.Decision{GateID: gate, Approve: approved}
		}
	}
	return nil
}

const afterMention = " ,:\t\r\n"

// TrimMention returns what follows the mention at the beginning of a text.
func TrimMention(after string) string { return strings.TrimLeft(after, afterMention) }

// EndsMention reports whether a name ends where the rest of a text begins: a longer name is another one.
func EndsMention(after string) bool {
	return after == "" || strings.IndexByte(afterMention, after[0]) >= 0
}

// Time returns the time of Unix milliseconds, zero if the platform does not say any.
func Time(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Recent reports whether a text is a time in Unix seconds within a window around now. A request with an older signature may be a
// recorded one.
func Recent(seconds string, now time.Time, window time.Duration) bool {
	n, err := strconv.ParseInt(seconds, 10, 64)
	return err == nil && now.Sub(time.Unix(n, 0)).Abs() <= window
}

// HashKey returns 64 hexadecimal digits that differ for different keys of chunks.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
