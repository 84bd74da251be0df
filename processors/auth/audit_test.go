package auth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/auth"
)

func TestFloodOfRefusalsDoesNotFloodTheLog(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	counts := &auth.AuditCounts{}
	sink := counts.Sink(auth.LogAudit(zap.New(core)))
	for range 1000 {
		sink(auth.AuditEvent{At: noon, Door: "chat", Action: auth.AuditRefuse, Status: 401})
	}
	sink(auth.AuditEvent{At: noon, Door: "chat", Action: auth.AuditWrite, Subject: "mira", Session: "s", RequestID: "r", Status: 200})
	require.Equal(t, 101, logs.Len(), "writes are never left out")
	sink(auth.AuditEvent{At: noon.Add(time.Second), Door: "chat", Action: auth.AuditRefuse, Status: 401})
	last := logs.All()[logs.Len()-1]
	require.Equal(t, int64(900), last.ContextMap()["omitted"])
	require.Equal(t, zap.WarnLevel, last.Level)
	require.Equal(t, uint64(1001), counts.All()[auth.AuditCount{Door: "chat", Action: auth.AuditRefuse, Status: 401}])
}

func TestTeePassesEventsToAllSinks(t *testing.T) {
	var a, b []auth.AuditEvent
	auth.AuditTee(
		func(e auth.AuditEvent) { a = append(a, e) }, func(e auth.AuditEvent) { b = append(b, e) },
	)(auth.AuditEvent{Door: "chat"})
	require.Equal(t, a, b)
	require.Len(t, a, 1)
}
