package turn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/processortest"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

func TestCancelAndPurgeAreReported(t *testing.T) {
	catalog, err := topics.For("quay")
	require.NoError(t, err)
	var reported []string
	graph, err := turn.Graph("quay", turn.Config{Metrics: turn.Metrics{
		Controlled: func(session, action string) { reported = append(reported, session+" "+action) },
	}})
	require.NoError(t, err)
	d := processortest.New(t, time.UnixMilli(1_790_000_000_000), graph)
	letters := processortest.OutRaw(d, catalog.DeadLetters())
	control := processortest.In(d, catalog.SessionControl)
	for _, value := range []string{`{"action":"cancel","request_id":"r"}`, `{"action":"purge"}`, `{"action":"other"}`} {
		control.PipeRaw("s", []byte(value))
	}
	require.Equal(t, []string{"s cancel", "s purge"}, reported)
	require.Len(t, letters.Drain(), 2, "there is nothing to cancel, and the third action is none")
}
