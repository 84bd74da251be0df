package repository

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// applied is an input that was applied, and what it caused.
type applied struct {
	in      topics.CrewInput
	at      time.Time
	effects effects
}

// simulation is a repository with some agents, a person, and a host that answers late, again, or never. It keeps what readers of
// the effects know.
type simulation struct {
	*harness
	t       *rapid.T
	log     []applied
	token   float64
	owners  map[string]string // agents by the path that they hold, as the events tell
	pending []topics.CrewAction
	done    []crewbody.Receipt
	forced  bool
	waiting map[string]string   // agents by the command of theirs that has no answer
	replied map[string]bool     // commands with an answer
	commits map[string][]string // the paths of each commit when the host was first asked, by its action
	moves   []string
}

var allMoves = []string{
	"lock", "lock", "lock", "unlock", "unlock", "commit", "commit", "active", "end", "free", "ask", "force", "answer", "answer", "answer",
	"again", "start", "wait", "wait", "repeat",
}

func newSimulation(t *rapid.T) *simulation {
	return &simulation{
		harness: newHarness(t), t: t, owners: map[string]string{}, moves: allMoves, waiting: map[string]string{}, replied: map[string]bool{},
		commits: map[string][]string{},
	}
}

var paths = []string{"a", "./a", "src", "src/*", "src/a", "src/a/*", "src/a/b", "srcx/y", "*x", "../a", `src\a`}

// say applies an input, and checks what it causes.
func (w *simulation) say(from string, body crewbody.Body) {
	w.heard(w.input(from, body))
}

func (w *simulation) heard(in topics.CrewInput) {
	w.t.Helper()
	e := w.apply(in)
	w.log = append(w.log, applied{in, w.now, e})
	w.forced = w.forced || in.Kind == crewbody.UnlockAsked{}.Kind()
	w.asks(in)
	for _, x := range e {
		switch x := x.(type) {
		case mailbox.Mail:
			w.answer(x)
		case topics.CrewEvent:
			w.event(effects{x}, x.Type)
		case topics.CrewAction:
			w.action(x)
		}
	}
	w.check()
}

// asks follows the commands of agents. One that has ended gets no answers.
func (w *simulation) asks(in topics.CrewInput) {
	switch in.Kind {
	case crewbody.Command{}.Kind():
		w.waiting[in.InputID] = in.From
	case crewbody.AgentEnded{}.Kind():
		for id, agent := range w.waiting {
			if agent == in.From {
				delete(w.waiting, id)
			}
		}
	}
}

// answer follows the answers to commands. There is at most one for each.
func (w *simulation) answer(m mailbox.Mail) {
	for _, n := range mails[crewbody.Note](effects{m}, m.To) {
		if n.CommandID == "" {
			continue
		}
		require.False(w.t, w.replied[n.CommandID], "a second answer: %s", n.Text)
		w.replied[n.CommandID] = true
		delete(w.waiting, n.CommandID)
	}
}

// settle has the host answer everything.
func (w *simulation) settle() {
	for len(w.pending) > 0 {
		a := w.pending[0]
		w.pending = w.pending[1:]
		w.say("host/dock", crewbody.Receipt{ActionID: a.ActionID, Commit: "c"})
	}
}

// event follows an event. Within a step the events are in the order of what happened, so no path is acquired before it is free.
func (w *simulation) event(one effects, kind string) {
	f := one.events(kind)[0]
	path, _ := f["filePath"].(string)
	agent, _ := f["agentId"].(string)
	switch kind {
	case "lock:acquired":
		token := f["token"].(float64)
		require.Greater(w.t, token, w.token, "tokens rise")
		w.token = token
		for p, owner := range w.owners {
			require.False(w.t, owner != agent && overlap(p, path), "%s and %s are held by two agents", p, path)
		}
		require.NotContains(w.t, w.owners, path)
		w.owners[path] = agent
	case "lock:released", "lock:expired":
		require.Equal(w.t, agent, w.owners[path], "%s %s", kind, path)
		delete(w.owners, path)
	}
}

// action keeps an action for the host. A commit contains what its agent holds in this step, and nothing else. A repeated one names the
// other paths with which the host may have made it.
func (w *simulation) action(a topics.CrewAction) {
	if a.Kind == (crewbody.Commit{}).Kind() {
		body := actionBody[crewbody.Commit](w.t, a)
		for _, p := range body.Paths {
			require.Equal(w.t, body.AgentID, w.owners[p], "a commit of %s", p)
		}
		require.True(w.t, w.forced || len(body.Paths) > 0)
		all := slices.Sorted(slices.Values(slices.Concat(body.Paths, body.Released)))
		if first, ok := w.commits[a.ActionID]; ok {
			require.Equal(w.t, first, all)
		} else {
			require.Empty(w.t, body.Released)
			w.commits[a.ActionID] = all
		}
	}
	if !slices.ContainsFunc(w.pending, func(p topics.CrewAction) bool { return p.ActionID == a.ActionID }) {
		w.pending = append(w.pending, a) // a host does no action twice
	}
}

// made reports whether the host can make a commit now. What it commits are the files of the action that it was given, and their
// agent must hold them at this moment, also if a person has released some meanwhile.
func (w *simulation) made(a topics.CrewAction) bool {
	if a.Kind != (crewbody.Commit{}).Kind() {
		return true
	}
	body := actionBody[crewbody.Commit](w.t, a)
	// The host's clock may be behind, and the last step of a commit takes some time.
	if w.now.Add(-clockMargin).UnixMilli() >= body.UntilMS {
		return false
	}
	for _, p := range body.Paths {
		require.Equal(w.t, body.AgentID, w.owners[p], "%s is committed for another agent than its holder", p)
	}
	return true
}

// check checks the row.
func (w *simulation) check() {
	w.t.Helper()
	s := w.state()
	held := map[string]string{}
	for _, l := range s.Locks {
		held[l.Path] = l.AgentId
		require.True(w.t, l.Commit != "" || l.ExpiresMs > w.now.UnixMilli())
		for _, other := range s.Locks {
			require.False(w.t, l.AgentId != other.AgentId && overlap(l.Path, other.Path), "%s and %s", l.Path, other.Path)
		}
		require.True(w.t, l.Commit == "" || slices.ContainsFunc(s.Commits, func(c *Commit) bool {
			return c.ActionId == l.Commit && c.AgentId == l.AgentId
		}), "%s is kept for a commit that is not open", l.Path)
	}
	require.Equal(w.t, w.owners, held, "the events tell what is held")
	open := map[string]bool{}
	for _, c := range s.Commits {
		require.False(w.t, open[c.AgentId], "one commit at a time")
		open[c.AgentId] = true
	}
	for _, q := range s.Queue {
		require.True(w.t, open[q.AgentId], "nothing waits for a commit that is not open")
	}
}

// move makes one random move.
func (w *simulation) move() {
	m := rapid.SampledFrom([]crewbody.Member{mira, mira, noor, otto}).Draw(w.t, "agent")
	from := mailbox.Agent(m.AgentID)
	path := rapid.SampledFrom(paths).Draw(w.t, "path")
	command := func(name, payload string) {
		w.say(from, crewbody.Command{Member: m, Name: name, Payload: topics.Raw(payload)})
	}
	quotedPath := quoted(path)
	switch rapid.SampledFrom(w.moves).Draw(w.t, "move") {
	case "lock":
		command("LOCK_FILE", `{"filePath":`+quotedPath+`}`)
	case "unlock":
		command("UNLOCK_FILE", `{"filePath":`+quotedPath+`}`)
	case "commit":
		command("COMMIT", `{"files":[`+quotedPath+`,"-A"]}`)
	case "active":
		w.say(from, crewbody.AgentActive{Member: m})
	case "end":
		w.say(from, crewbody.AgentEnded{AgentID: m.AgentID})
	case "free":
		w.say("crew/"+m.CrewID, crewbody.ReleaseLocks{AgentID: m.AgentID})
	case "ask":
		w.say("", crewbody.LockAsked{Member: m, FilePath: path, TTLMS: rapid.Int64Range(-1, 1_000_000).Draw(w.t, "ttl")})
	case "force":
		if l := w.state().Locks; len(l) > 0 && rapid.Bool().Draw(w.t, "held") {
			path = rapid.SampledFrom(l).Draw(w.t, "lock").Path
		}
		w.say("", crewbody.UnlockAsked{AgentID: m.AgentID, FilePath: path, Force: rapid.Bool().Draw(w.t, "force")})
	case "answer":
		if len(w.pending) > 0 {
			i := rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "action")
			r := crewbody.Receipt{ActionID: w.pending[i].ActionID, Failed: rapid.Bool().Draw(w.t, "failed") || !w.made(w.pending[i])}
			if !r.Failed && rapid.Bool().Draw(w.t, "dirty") {
				r.Dirty = []string{"x"}
			}
			w.pending, w.done = slices.Delete(w.pending, i, i+1), append(w.done, r)
			w.say("host/dock", r)
		}
	case "again": // a receipt of a repeated action
		if len(w.done) > 0 {
			w.say("host/dock", rapid.SampledFrom(w.done).Draw(w.t, "receipt"))
		}
	case "start": // the earlier run of the host has died, or the record is one of a host that still does what it was asked for
		if rapid.Bool().Draw(w.t, "died") {
			w.pending = nil
		}
		w.say("host/dock", crewbody.HostStarted{Host: "dock", Epoch: 1})
	case "wait":
		w.wait(rapid.SampledFrom([]time.Duration{time.Millisecond, 19 * time.Second, time.Minute, 299 * time.Second, 12 * time.Minute}).Draw(w.t, "time"))
	case "repeat":
		w.repeat()
	}
	w.now = w.now.Add(time.Millisecond)
}

// wait moves the clock. Deadlines are read late, or not before the next input; one that was read may have moved since, but is never that
// of a time to come, which would set the row's clock ahead of the host's by more than clockMargin.
func (w *simulation) wait(d time.Duration) {
	w.now = w.now.Add(d)
	if s := w.state(); s.DeadlineMs != 0 && s.DeadlineMs <= w.now.UnixMilli() || rapid.IntRange(0, 9).Draw(w.t, "early") == 0 {
		w.say("", crewbody.Due{AtMS: min(s.DeadlineMs, w.now.UnixMilli())})
	}
}

// repeat applies an input that was applied before. It must change nothing.
func (w *simulation) repeat() {
	if len(w.log) == 0 {
		return
	}
	old := w.log[rapid.IntRange(max(0, len(w.log)-100), len(w.log)-1).Draw(w.t, "input")]
	if old.in.Kind == (crewbody.Due{}).Kind() {
		return
	}
	before := w.row
	require.Empty(w.t, w.apply(old.in))
	require.Equal(w.t, before, w.row)
}
