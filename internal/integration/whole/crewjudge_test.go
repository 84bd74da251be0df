package whole

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew"
	"github.com/turntable-streams/turntable/topics"
)

// crewLog is everything that the groups and the host write, as a reader of committed records sees it. It answers permission
// requests.
type crewLog struct {
	y *crewWorld

	mu      sync.Mutex
	events  map[string]map[int64]topics.CrewEvent // by subject and number
	order   []topics.CrewEvent                    // as they came, without repeats
	read    []time.Time                           // when each of order was read
	prompts []string                              // of the actions
	inputs  map[string]map[string][]processors.Inbound
	rows    map[string]map[string][]byte
	differ  []string
}

func followCrew(y *crewWorld) *crewLog {
	l := &crewLog{
		y: y, events: map[string]map[int64]topics.CrewEvent{}, inputs: map[string]map[string][]processors.Inbound{},
		rows: map[string]map[string][]byte{},
	}
	names := []string{
		y.catalog.CrewEvents.Name(), y.catalog.CrewActions.Name(), y.catalog.CrewAgentInputs.Name(), y.catalog.CrewInputs.Name(),
		y.catalog.CrewRepositoryInputs.Name(), string(y.catalog.CrewAgentsGroup()) + "-table", string(y.catalog.CrewsGroup()) + "-table",
		string(y.catalog.CrewRepositoriesGroup()) + "-table",
	}
	f := must(processors.NewTableFollower(y.brokers, names, l.take))
	y.serve(f.Run)
	return l
}

func (l *crewLog) take(r processors.Inbound) {
	c := l.y.catalog
	switch r.Topic {
	case c.CrewEvents.Name():
		l.event(r, c.CrewEvents.Codec().Unmarshal(r.Value).Value)
	case c.CrewActions.Name():
		if a := c.CrewActions.Codec().Unmarshal(r.Value).Value; a.Kind == (crewbody.Send{}).Kind() {
			l.mu.Lock()
			l.prompts = append(l.prompts, a.Subject+" "+string(a.Body))
			l.mu.Unlock()
		}
	case c.CrewAgentInputs.Name(), c.CrewInputs.Name(), c.CrewRepositoryInputs.Name():
		l.mu.Lock()
		keep(l.inputs, r.Topic, string(r.Key), append(l.inputs[r.Topic][string(r.Key)], r))
		l.mu.Unlock()
	default:
		l.mu.Lock()
		keep(l.rows, r.Topic, string(r.Key), r.Value)
		l.mu.Unlock()
	}
}

func keep[T any](m map[string]map[string]T, topic, key string, value T) {
	if m[topic] == nil {
		m[topic] = map[string]T{}
	}
	m[topic][key] = value
}

// event keeps an event. A repeat must be the same.
func (l *crewLog) event(r processors.Inbound, e topics.CrewEvent) {
	l.mu.Lock()
	if l.events[e.Subject] == nil {
		l.events[e.Subject] = map[int64]topics.CrewEvent{}
	}
	known, repeat := l.events[e.Subject][e.Seq]
	if repeat && (known.Type != e.Type || string(known.Fields) != string(e.Fields) || known.Cause != e.Cause) {
		l.differ = append(l.differ, fmt.Sprintf("%s %d: %s of %s and %s of %s", e.Subject, e.Seq, known.Type, known.Cause, e.Type, e.Cause))
	}
	l.events[e.Subject][e.Seq] = e
	if !repeat {
		l.order = append(l.order, e)
		l.read = append(l.read, time.Now())
	}
	l.mu.Unlock()
	if !repeat && e.Type == "agent:permission_request" {
		go l.allow(e)
	}
}

// fields are members of an event as texts.
func fields(e topics.CrewEvent) map[string]any {
	var m map[string]any
	_ = json.Unmarshal(e.Fields, &m)
	return m
}

// allow answers a permission request.
func (l *crewLog) allow(e topics.CrewEvent) {
	f := fields(e)
	request, _ := f["request"].(map[string]any)
	id, _ := request["id"].(string)
	agent, _ := f["agentId"].(string)
	_ = put(l.y.ctx, l.y.world, l.y.catalog.GateDecisions, agent, topics.GateDecision{
		GateID: id, SessionID: agent, DecisionID: "allow/" + id, Verdict: topics.VerdictApprove, By: "person", Via: "test",
	}, "allow/"+id)
}

// all returns the events of a type, without repeats.
func (l *crewLog) all(kind string) (found []topics.CrewEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.order {
		if e.Type == kind {
			found = append(found, e)
		}
	}
	return found
}

func (l *crewLog) has(kind, member, value string) bool {
	return slices.ContainsFunc(l.all(kind), func(e topics.CrewEvent) bool { return fields(e)[member] == value })
}

// committed reports whether a try was committed.
func (l *crewLog) committed(name string) bool {
	return slices.ContainsFunc(l.all("agent:committed"), func(e topics.CrewEvent) bool {
		message, _ := fields(e)["message"].(string)
		return strings.HasPrefix(message, "work "+name+"\n") || message == "work "+name
	})
}

// last describes the newest n events of the log, and says when they were read.
func (l *crewLog) last(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for i := max(0, len(l.order)-n); i < len(l.order); i++ {
		e := l.order[i]
		fmt.Fprintf(&b, "\n%s %s %d %s %.150s", l.read[i].Format(time.TimeOnly), e.Subject, e.Seq, e.Type, e.Fields)
	}
	return b.String()
}

// count returns how many events of a type have a text in their fields.
func (l *crewLog) count(kind, text string) (n int) {
	for _, e := range l.all(kind) {
		if strings.Contains(string(e.Fields), text) {
			n++
		}
	}
	return n
}

// sent reports whether a prompt of an agent has a text.
func (l *crewLog) sent(agent, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.prompts, func(p string) bool {
		return strings.HasPrefix(p, "agent/"+agent+" ") && strings.Contains(p, text)
	})
}

// judge checks that the log has each event once. Events may still arrive: agents are told things without end.
func (l *crewLog) judge(t require.TestingT) {
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.differ, "repeats that differ")
	for subject, events := range l.events {
		for n := range int64(len(events)) {
			require.Contains(t, events, n+1, "%s has a gap", subject)
		}
	}
}

// judge checks the promises, once what is in flight has settled.
func (y *crewWorld) judge() {
	problem := y.settled()
	for end := time.Now().Add(time.Minute); problem != nil && y.ctx.Err() == nil && time.Now().Before(end); problem = y.settled() {
		rest(y.ctx)
	}
	require.NoError(y.t, problem, "not settled")

	y.log.judge(y.t)
	y.judgeCommits()
	l := y.log
	for _, name := range y.tries() {
		for _, once := range [][2]string{
			{"lock:acquired", name + ".txt"},
			{"bus:message", "said " + name + `"`},
			{"group:message", "told " + name + `"`},
			{"agent:committed", "work " + name},
		} {
			require.LessOrEqual(y.t, l.count(once[0], once[1]), 1, "%s of %s", once[0], name)
		}
		if l.committed(name) {
			require.Equal(y.t, 1, l.count("bus:message", "said "+name+`"`), name)
			require.Equal(y.t, 1, l.count("group:message", "told "+name+`"`), name)
		}
	}
}

// settled reports what is still open: permissions, messages that were not sent, rows that differ from what their inputs make.
func (y *crewWorld) settled() error {
	l := y.log
	resolved := map[string]int{}
	for _, e := range l.all("agent:permission_resolved") {
		id, _ := fields(e)["requestId"].(string)
		resolved[id]++
	}
	for _, e := range l.all("agent:permission_request") {
		request, _ := fields(e)["request"].(map[string]any)
		if id, _ := request["id"].(string); resolved[id] != 1 {
			return fmt.Errorf("permission %s of %s has %d ends", id, e.Subject, resolved[id])
		}
	}
	for _, e := range l.all("bus:message") {
		m, _ := fields(e)["message"].(map[string]any)
		to, _ := m["to"].(string)
		if content, _ := m["content"].(string); strings.HasPrefix(content, "said ") && !l.sent(to, content) { // others only tell people
			return fmt.Errorf("message %q was not sent to %s", content, to)
		}
	}
	for _, e := range l.all("group:message") {
		f := fields(e)
		m, _ := f["message"].(map[string]any)
		content, _ := m["content"].(string)
		recipients, _ := f["recipientIds"].([]any)
		for _, to := range recipients {
			if to, _ := to.(string); !l.sent(to, content) {
				return fmt.Errorf("group message %q was not sent to %s", content, to)
			}
		}
	}
	return y.verified()
}

// verified checks that the rows of the tables are what their inputs make.
func (y *crewWorld) verified() error {
	l, c := y.log, y.catalog
	l.mu.Lock()
	defer l.mu.Unlock()
	for group, inputs := range map[goka.Group]string{
		c.CrewAgentsGroup(): c.CrewAgentInputs.Name(), c.CrewsGroup(): c.CrewInputs.Name(), c.CrewRepositoriesGroup(): c.CrewRepositoryInputs.Name(),
	} {
		for key, inputs := range l.inputs[inputs] {
			row := l.rows[string(group)+"-table"][key]
			events, err := crew.Verify(y.agent, quickRestarts, group, key, row, inputs)
			if err != nil {
				return err
			}
			if err := l.same(key, events); err != nil {
				return err
			}
		}
	}
	return nil
}

// same checks that the events that inputs make are those in the topic.
func (l *crewLog) same(key string, events []topics.CrewEvent) error {
	for _, e := range events {
		known, ok := l.events[e.Subject][e.Seq]
		if !ok || known.Type != e.Type || string(known.Fields) != string(e.Fields) {
			return fmt.Errorf("%s: event %d of the inputs is %s, that of the topic %s (%t)", key, e.Seq, e.Type, known.Type, ok)
		}
	}
	if len(events) > 0 && len(events) != len(l.events[events[0].Subject]) {
		return fmt.Errorf("%s: the inputs make %d events, the topic has %d", key, len(events), len(l.events[events[0].Subject]))
	}
	return nil
}

// tries are the names of all tries, from the files that were locked.
func (y *crewWorld) tries() (names []string) {
	for _, e := range y.log.all("lock:acquired") {
		if path, _ := fields(e)["filePath"].(string); path != "shared.txt" {
			names = append(names, strings.TrimSuffix(path, ".txt"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// judgeCommits checks that each commit in the history has its event, once, and only files that its agent held.
func (y *crewWorld) judgeCommits() {
	held := map[string]string{} // agent by path
	byCommit := map[string]topics.CrewEvent{}
	y.log.mu.Lock()
	events := maps.Clone(y.log.events["repository/"+testRepo])
	y.log.mu.Unlock()
	for n := range int64(len(events)) {
		e := events[n+1]
		f := fields(e)
		path, _ := f["filePath"].(string)
		who, _ := f["agentId"].(string)
		switch e.Type {
		case "lock:acquired":
			require.Contains(y.t, []string{"", who}, held[path], "%s was locked by two agents", path)
			held[path] = who
		case "lock:released", "lock:expired":
			delete(held, path)
		case "agent:committed":
			commit, _ := f["commit"].(string)
			require.NotContains(y.t, byCommit, commit, "a commit with two events")
			byCommit[commit] = e
			for _, file := range f["files"].([]any) {
				require.Equal(y.t, who, held[file.(string)], "%s in commit %s", file, commit)
			}
		}
	}
	shown := y.git("log", "--format=commit %H", "--name-only")
	for _, part := range strings.Split(shown, "commit ")[1:] {
		lines := strings.Fields(part)
		if slices.Contains(lines, "README") {
			continue
		}
		e, ok := byCommit[lines[0]]
		require.True(y.t, ok, "commit %s has no event", lines[0])
		var files []string
		for _, f := range fields(e)["files"].([]any) {
			files = append(files, f.(string))
		}
		require.ElementsMatch(y.t, lines[1:], files)
	}
}
