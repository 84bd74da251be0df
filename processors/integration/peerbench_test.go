package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/door"
	"github.com/turntable-streams/turntable/processors/peer/settings"
	"github.com/turntable-streams/turntable/processors/peer/transport"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// BenchmarkDelegation compares a task that is sent through the proxy of one instance and runs as a turn of another one with a
// plain HTTP call that gives the same answer. Both instances, with a model that answers at once, and their embedded broker are
// in this process, and so is their CPU time. p50 is that of one caller.
func BenchmarkDelegation(b *testing.B) {
	group, ctx := errgroup.WithContext(b.Context())
	ctx, stop := context.WithCancel(ctx)
	brokers := testbroker.Start(b)
	receiver := instance(ctx, b, group, brokers, testbroker.Agent(), `{"peers":{"enabled":true,"instanceId":"tenant-1",
		"inboundTokens":[{"id":"hq","token":"`+peerToken+`"}]}}`)
	hq := instance(ctx, b, group, brokers, testbroker.Agent(), `{"peers":{"enabled":true,"instanceId":"hq",
		"outbound":[{"id":"tenant","baseUrl":"`+receiver+`","token":"`+peerToken+`"}]}}`)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"taskId":"t","peerInstanceId":"tenant-1","status":"success","result":"done"}`)
	}))
	defer plain.Close()

	var floor time.Duration
	for _, way := range []struct{ name, url string }{
		{"plain-http", plain.URL}, {"delegation", hq + "/api/peer/proxy"},
	} {
		b.Run(way.name, func(b *testing.B) {
			call := func(n int) {
				body := fmt.Sprintf(`{"peerId":"tenant","taskId":"%s-%d-%d","content":"work"}`, way.name, b.N, n)
				r, err := http.Post(way.url, "application/json", bytes.NewBufferString(body))
				require.NoError(b, err)
				answer, err := io.ReadAll(r.Body)
				require.NoError(b, err)
				require.NoError(b, r.Body.Close())
				require.Equal(b, http.StatusOK, r.StatusCode, "%s", answer)
				require.Contains(b, string(answer), "done")
			}
			call(-1)
			took, before := make([]time.Duration, 0, b.N), cpuTime(b)
			for n := 0; b.Loop(); n++ {
				at := time.Now()
				call(n)
				took = append(took, time.Since(at))
			}
			cpu := (cpuTime(b) - before) / time.Duration(len(took))
			slices.Sort(took)
			p50 := took[len(took)/2]
			if way.name == "plain-http" {
				floor = p50
			}
			b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
			b.ReportMetric(float64(cpu.Microseconds()), "cpu-µs/op")
			b.ReportMetric(float64(p50)/float64(floor), "p50/plain")
		})
	}
	stop()
	require.NoError(b, group.Wait())
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// instance runs an instance that sends and accepts tasks, and returns the address of its door.
func instance(
	ctx context.Context, b *testing.B, group *errgroup.Group, brokers []string, agent, configuration string,
) string {
	b.Helper()
	s, err := settings.Parse([]byte(configuration), func(string) (string, bool) { return "", false })
	require.NoError(b, err)
	current := func() *settings.Settings { return s }
	catalog, err := topics.For(agent, topics.WithPeers())
	require.NoError(b, err)
	to, err := processors.NewPublisher(brokers)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, to.Close()) })
	turns, err := turn.Graph(agent)
	require.NoError(b, err)
	tasks, err := peer.Graph(agent, peer.WithSettings(current))
	require.NoError(b, err)
	chain, err := peer.ChainGraph(agent)
	require.NoError(b, err)
	for _, g := range []*goka.GroupGraph{turns, tasks, chain} {
		p, err := processors.New(brokers, g, processors.WithTopics(catalog), processors.WithPartitions(gatePartitions),
			processors.WithStorage(processors.Memory()))
		require.NoError(b, err)
		group.Go(func() error { return p.Run(ctx) })
	}
	model, err := think.New(agent, to, think.Func(func(context.Context, think.Step) (think.Reply, error) {
		return think.Say("done"), nil
	}))
	require.NoError(b, err)
	group.Go(func() error { return model.Run(ctx, brokers) })
	requests := transport.New(current)
	b.Cleanup(requests.Close)
	sender, err := sink.New(agent, to, sink.ForPeers(), sink.WithTransport(topics.KindPeer, requests))
	require.NoError(b, err)
	group.Go(func() error { return sender.Run(ctx, brokers) })
	replies, err := door.NewReplies(agent)
	require.NoError(b, err)
	group.Go(func() error { return replies.Run(ctx, brokers) })
	handler, err := door.New(replies, to, current, door.WithOpenProxy())
	require.NoError(b, err)
	server := httptest.NewServer(handler)
	b.Cleanup(server.Close)
	<-replies.Ready()
	return server.URL
}
