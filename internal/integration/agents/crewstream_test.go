package agents

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/processors/crew/crewhttp"
	"github.com/turntable-streams/turntable/processors/crew/host"
	"github.com/turntable-streams/turntable/topics"
)

const (
	streamingAgents  = 50
	updatesPerSecond = 200
	warmUp, measured = 3 * time.Second, 10 * time.Second
)

// BenchmarkStreamingCrew has 50 agents stream 200 updates per second each, as child processes, through host, broker, group and
// door to one WebSocket client that reads all text. It reports:
//
//	p50-ms, p99-ms               how late the text is
//	updates/s, wanted/s          the updates that the client got, and those that the agents want to write
//	floor-updates/s              those that a program gets that only reads and decodes what the agents write: if it is less than
//	                             wanted/s, the machine is too slow for the agents
//	cpu-us/update, cores         CPU of this process: host, groups, door and client, without broker and agents
//	x-floor                      cpu-us/update in relation to that program
//	heap-MiB, live-MiB           heap of this process at the end, with and without garbage
//	broker-cores, broker-peak-MiB  those of the embedded broker, which is another process; none with the tag kafka
func BenchmarkStreamingCrew(b *testing.B) {
	for b.Loop() {
		r := newStreamRig(b)
		r.spawn(streamingAgents)
		late, cpu := r.measure()
		slices.Sort(late)
		require.NotEmpty(b, late)
		b.ReportMetric(heapMiB(), "heap-MiB")
		runtime.GC()
		b.ReportMetric(heapMiB(), "live-MiB")
		quantile := func(q float64) float64 { return float64(late[int(float64(len(late)-1)*q)].Microseconds()) / 1000 }
		b.ReportMetric(quantile(0.5), "p50-ms")
		b.ReportMetric(quantile(0.99), "p99-ms")
		b.ReportMetric(float64(len(late))/measured.Seconds(), "updates/s")
		b.ReportMetric(streamingAgents*updatesPerSecond, "wanted/s")
		b.ReportMetric(float64(cpu.Microseconds())/float64(len(late)), "cpu-us/update")
		b.ReportMetric(cpu.Seconds()/measured.Seconds(), "cores")
		r.stop()
		r.broker.report(b)
		each, perSecond := r.floor(streamingAgents)
		b.ReportMetric(perSecond, "floor-updates/s")
		b.ReportMetric(float64(cpu)/float64(len(late))/float64(each), "x-floor")
		b.ReportMetric(0, "ns/op")
	}
}

func heapMiB() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse) / (1 << 20)
}

type streamRig struct {
	b       *testing.B
	ctx     context.Context
	stop    func()
	catalog topics.Catalog
	broker  *separateBroker
	brokers []string
	to      *processors.KafkaPublisher
	dir     string
	client  *ws.Conn
	n       int
}

func newStreamRig(b *testing.B) *streamRig {
	ctx, cancel := context.WithCancel(b.Context())
	broker := startBroker(b)
	r := &streamRig{b: b, ctx: b.Context(), broker: broker, brokers: broker.addrs, dir: b.TempDir()}
	agent := testbroker.Agent()
	var err error
	r.catalog, err = topics.For(agent, topics.WithCrews(), topics.WithGates())
	require.NoError(b, err)
	r.to, err = processors.NewPublisher(r.brokers)
	require.NoError(b, err)
	graphs, err := crew.Graphs(agent, crew.Config{MaxAgents: streamingAgents + 1})
	require.NoError(b, err)
	require.NoError(b, processors.EnsureTopics(ctx, r.brokers, processors.WithTopics(r.catalog), processors.WithPartitions(4)))
	group, ctx := errgroup.WithContext(ctx)
	for _, graph := range graphs {
		r.run(group, ctx, graph)
	}
	exe, err := os.Executable()
	require.NoError(b, err)
	b.Setenv(streamRate, strconv.Itoa(updatesPerSecond))
	h, err := host.New(host.Config{
		Agent: agent, Name: "h", Brokers: r.brokers, Commands: map[string][]string{"": {exe}}, Dirs: []string{r.dir},
		Env: append(host.DefaultEnv(), streamRate), MaxAgents: streamingAgents + 1,
	})
	require.NoError(b, err)
	group.Go(func() error { return h.Run(ctx) })
	index, err := crewhttp.NewIndex(agent, crewhttp.Config{})
	require.NoError(b, err)
	group.Go(func() error { return index.Run(ctx, r.brokers) })
	handler, err := crewhttp.New(index, r.to, crewhttp.Config{})
	require.NoError(b, err)
	server := httptest.NewServer(handler)
	<-index.Ready()
	r.client, _, err = ws.Dial(ctx, strings.Replace(server.URL, "http", "ws", 1)+crewhttp.SocketPath, nil)
	require.NoError(b, err)
	r.client.SetReadLimit(16 << 20)
	require.NoError(b, r.client.Write(ctx, ws.MessageText, []byte(`{"type":"subscribe"}`)))
	r.stop = func() {
		_ = r.client.CloseNow()
		cancel()
		require.NoError(b, group.Wait())
		server.Close()
		require.NoError(b, r.to.Close())
		broker.stop()
	}
	return r
}

func (r *streamRig) run(group *errgroup.Group, ctx context.Context, graph *goka.GroupGraph) {
	p, err := processors.New(r.brokers, graph, processors.WithTopics(r.catalog), processors.WithInstance("i"),
		processors.WithStorage(processors.LevelDB(filepath.Join(r.b.TempDir(), string(graph.Group())))))
	require.NoError(r.b, err)
	group.Go(func() error { return p.Run(ctx) })
}

func (r *streamRig) put(body crewbody.Body) {
	r.n++
	in := topics.CrewInput{InputID: "bench/" + strconv.Itoa(r.n), Kind: body.Kind(), Body: crewbody.Encode(body)}
	out, err := processors.OutboundOf(r.catalog.CrewInputs, "crew", in, in.InputID)
	require.NoError(r.b, err)
	require.NoError(r.b, r.to.Publish(r.ctx, out))
}

// spawn starts a lead and agents. Their first prompt makes them stream.
func (r *streamRig) spawn(n int) {
	r.put(crewbody.Configure{Host: "h", Cwd: r.dir})
	lead := fmt.Sprintf("%08x-0000-4000-8000-000000000000", 0)
	r.put(crewbody.SpawnAsked{AgentID: lead, RoleID: "lead"})
	for i := 1; i < n; i++ {
		r.put(crewbody.SpawnAsked{
			AgentID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), RoleID: "developer", ParentID: lead, Task: "stream",
		})
	}
	for streams := map[string]bool{}; len(streams) < n; {
		f := r.frame()
		if f.Type == "agent:text" {
			streams[f.AgentID] = true
		}
	}
}

type textFrame struct {
	Type    string `json:"type"`
	AgentID string `json:"agentId"`
	Text    string `json:"text"`
}

func (r *streamRig) frame() (f textFrame) {
	_, raw, err := r.client.Read(r.ctx)
	require.NoError(r.b, err)
	require.NoError(r.b, json.Unmarshal(raw, &f))
	return f
}

var streamedAt = regexp.MustCompile(`(\d{19})` + streamMark)

// measure reads frames and returns how late each update was, and the CPU time of this process.
func (r *streamRig) measure() (late []time.Duration, cpu time.Duration) {
	for begin := time.Now(); time.Since(begin) < warmUp; {
		r.frame()
	}
	before, end := cpuTime(), time.Now().Add(measured)
	for time.Now().Before(end) {
		f := r.frame()
		now := time.Now()
		for _, at := range streamedAt.FindAllStringSubmatch(f.Text, -1) {
			n, _ := strconv.ParseInt(at[1], 10, 64)
			late = append(late, now.Sub(time.Unix(0, n)))
		}
	}
	return late, cpuTime() - before
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
