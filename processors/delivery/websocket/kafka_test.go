package websocket

import (
	"context"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/memnet"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

// running starts a server that reads from a broker.
func running(t testing.TB, brokers []string) (s *fixture, stop func()) {
	t.Helper()
	server, err := New("pilot", Config{ResumeKeys: [][]byte{resumeKey}})
	require.NoError(t, err)
	s = &fixture{Server: server, t: t}
	s.http, s.dials = memnet.Serve(server)
	t.Cleanup(s.http.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- server.Run(ctx, brokers) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-ran)
		}
	}
	t.Cleanup(stop)
	awaitReady(t, server)
	return s, stop
}

func TestEveryServerShowsNewRecordsAndResumesClients(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{Partitions: 4})
	require.NoError(t, err)
	defer broker.Close()
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	require.NoError(t, topics.EnsureCluster(t.Context(), broker.Addrs(), kafka.Config(), catalog))
	to, err := processors.NewPublisher(broker.Addrs())
	require.NoError(t, err)
	defer to.Close()
	publish := func(topic, value, id string) {
		out := processors.Outbound{Topic: topic, Key: "s", Value: []byte(value)}
		if id != "" {
			out.Headers = goka.Headers{topics.HeaderID: []byte(id)}
		}
		require.NoError(t, to.Publish(t.Context(), out))
	}

	publish(catalog.MessageInput.Name(), `"before"`, "")
	first, stop := running(t, broker.Addrs())
	second, _ := running(t, broker.Addrs())
	a, b := first.open().subscribe("s"), second.open().subscribe("s")
	publish(catalog.MessageInput.Name(), `"one"`, "")
	publish(catalog.ToolUse.Name(), `"two"`, "")
	for _, one := range []*browser{a, b} {
		got := []string{one.next().data, one.next().data}
		require.Contains(t, got[0]+got[1], `"one"`)
		require.Contains(t, got[0]+got[1], `"two"`)
	}
	publish(catalog.MessageOutput.Name(), `{"content":"three"}`, "turn/0/output/0")
	last := a.require(`pipeline_event`, `chat_response`)[1]
	same := b.require(`pipeline_event`, `chat_response`)[1]
	require.Equal(t, last.data, same.data, "the answer has the same ID in every process")

	// The first server stops while the client is disconnected. The client resumes at the second server, and at a third one
	// that was started later.
	require.NoError(t, a.CloseNow())
	stop()
	publish(catalog.ToolUse.Name(), `"four"`, "")
	b.require(`"four"`) // records of two topics have no common order
	publish(catalog.MessageOutput.Name(), `{"content":"five"}`, "turn-2/0/output/0")
	third, _ := running(t, broker.Addrs())
	for _, s := range []*fixture{second, third} {
		back := s.open().resume("s", last.id)
		back.require(`"four"`, `pipeline_event`, `"content":"five"`, `"complete":true,"replayed":3`)
	}
	publish(catalog.MessageInput.Name(), `"six"`, "")
	b.require(`pipeline_event`, `"content":"five"`, `"six"`)
}

func TestServerWaitsForItsTopics(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	defer broker.Close()
	server, err := New("pilot", Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- server.Run(ctx, broker.Addrs()) }()
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	require.False(t, server.follows.IsReady())
	require.NoError(t, topics.EnsureCluster(t.Context(), broker.Addrs(), kafka.Config(), catalog))
	awaitReady(t, server)
	cancel()
	require.NoError(t, <-ran)
}

func awaitReady(t testing.TB, s *Server) {
	t.Helper()
	select {
	case <-s.Ready():
	case <-time.After(waitLimit):
		require.FailNow(t, "the server is not ready")
	}
}
