package responder_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder"
)

func TestDeadlineOfARecordIsThatOfItsTurn(t *testing.T) {
	begun := time.UnixMilli(1_000_000)
	for name, c := range map[string]struct {
		header  string
		timeout responder.Timeout
		want    int64
	}{
		"the turn's is earlier":           {"1005000", responder.Timeout{After: time.Minute}, 1_005_000},
		"the turn's is later":             {"1600000", responder.Timeout{After: time.Minute}, 1_600_000},
		"a chosen timeout is earlier":     {"1600000", responder.Timeout{After: time.Minute, Chosen: true}, 1_060_000},
		"a chosen timeout is later":       {"1005000", responder.Timeout{After: time.Minute, Chosen: true}, 1_005_000},
		"another pipeline writes none":    {"", responder.Timeout{After: time.Minute}, 1_060_000},
		"not a number":                    {"soon", responder.Timeout{After: time.Minute}, 1_060_000},
		"not a time":                      {"-5", responder.Timeout{After: time.Minute}, 1_060_000},
		"a number that no int64 can hold": {"99999999999999999999", responder.Timeout{After: time.Minute}, 1_060_000},
	} {
		t.Run(name, func(t *testing.T) {
			r := processors.Inbound{Headers: []processors.Header{{Name: "turntable.deadline", Value: []byte(c.header)}}}
			require.Equal(t, c.want, c.timeout.Deadline(r, begun).UnixMilli())
		})
	}
}
