package fold

import (
	"bytes"
	"testing"
	"time"
)

// For any records, nothing panics, the row stays small, and it is deleted in the end.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		`{"session_id":"s","turn_id":"t","attempt":1,"seq":1,"event":{"type":"message_start","id":"m"}}
{"session_id":"s","turn_id":"t","attempt":1,"seq":3,"event":{"type":"done","data":{"stopReason":"x"}}}
{"session_id":"s","turn_id":"t","attempt":1,"seq":2,"event":{"type":"done","data":null}}`,
		`{"session_id":"s","turn_id":"t","attempt":2,"seq":1,"author":"user","event":[]}
{"session_id":"s","turn_id":"t","attempt":9007199254740993,"seq":1,"request":{"history":3},"event":null}
{"session_id":"s","turn_id":"t","attempt":9007199254740993,"seq":2,"result":{"ok":true,"usage":{"cost":1e999}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		p := newPlay(t, thinking, func(c *Config) { c.OpenTurns, c.WindowCount, c.TurnLimit = 2, 3, 1<<10 })
		for line := range bytes.Lines(stream) {
			d := quay.AgentEvents.Codec().Unmarshal(line)
			if d.Err == nil {
				p.handle(eventReceived{record(""), d.Value})
				p.now = p.now.Add(100 * time.Millisecond)
			}
		}
		p.settle()
	})
}
