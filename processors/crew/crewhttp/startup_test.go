package crewhttp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/topics"
)

// A door that is started before its topics says so within seconds and answers with 503, and works once the groups have begun.
func TestDoorWaitsForItsTopicsAndSaysSo(t *testing.T) {
	brokers := testbroker.Start(t)
	name := testbroker.Agent()
	logs, seen := observer.New(zap.WarnLevel)
	index, err := NewIndex(name, Config{Door: auth.Door{Logger: zap.New(logs)}})
	require.NoError(t, err)
	to, err := processors.NewPublisher(brokers)
	require.NoError(t, err)
	defer func() { require.NoError(t, to.Close()) }()
	handler, err := New(index, to, Config{Door: auth.Door{Logger: zap.NewNop()}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- index.Run(ctx, brokers) }()
	defer func() { cancel(); require.NoError(t, <-ended) }()
	require.Eventually(t, func() bool { return seen.Len() > 0 }, 15*time.Second, 10*time.Millisecond)
	require.Contains(t, fmt.Sprint(seen.All()[0].ContextMap()), "crew")
	ask := func() int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/agents", nil))
		return w.Code
	}
	require.Equal(t, http.StatusServiceUnavailable, ask())

	c, err := topics.For(name, topics.WithCrews(), topics.WithGates())
	require.NoError(t, err)
	require.NoError(t, topics.EnsureCluster(t.Context(), brokers, kafka.Config(), c, topics.WithPartitions(2)))
	running := make(chan error, 3)
	graphs, err := crew.Graphs(name, crew.Config{})
	require.NoError(t, err)
	for i, graph := range graphs {
		p, err := processors.New(brokers, graph, processors.WithTopics(c), processors.WithPartitions(2),
			processors.WithInstance(fmt.Sprint("i", i)), processors.WithStorage(processors.LevelDB(t.TempDir())))
		require.NoError(t, err)
		go func() { running <- p.Run(ctx) }()
	}
	defer func() {
		cancel()
		for range 3 {
			require.NoError(t, <-running)
		}
	}()
	select {
	case <-index.Ready():
	case <-time.After(waitLimit):
		require.FailNow(t, "the index is not ready")
	}
	require.Equal(t, http.StatusOK, ask())
}
