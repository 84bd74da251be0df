package audit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/audit"
)

func TestFloodOfRefusalsDoesNotFloodTheLog(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	counts := &audit.Counts{}
	sink := counts.Sink(audit.Log(zap.New(core)))
	for range 1000 {
		sink(audit.Event{At: noon, Door: "chat", Action: audit.Refuse, Status: 401})
	}
	sink(audit.Event{At: noon, Door: "chat", Action: audit.Write, Subject: "mira", Session: "s", RequestID: "r", Status: 200})
	require.Equal(t, 101, logs.Len(), "writes are never left out")
	sink(audit.Event{At: noon.Add(time.Second), Door: "chat", Action: audit.Refuse, Status: 401})
	last := logs.All()[logs.Len()-1]
	require.Equal(t, int64(900), last.ContextMap()["omitted"])
	require.Equal(t, zap.WarnLevel, last.Level)
	require.Equal(t, uint64(1001), counts.All()[audit.Count{Door: "chat", Action: audit.Refuse, Status: 401}])
}

func TestTeePassesEventsToAllSinks(t *testing.T) {
	var a, b []audit.Event
	audit.Tee(
		func(e audit.Event) { a = append(a, e) }, func(e audit.Event) { b = append(b, e) },
	)(audit.Event{Door: "chat"})
	require.Equal(t, a, b)
	require.Len(t, a, 1)
}
