package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// decideCommand decides a gate. Who approves a call repeats the digest of its arguments, which show --payload prints with them.
type decideCommand struct {
	Gate       string `arg:"" help:"ID of the gate."`
	Verdict    string `arg:"" enum:"approve,deny,answer" help:"approve, deny or answer."`
	ArgsSHA256 string `name:"args-sha256" help:"Digest of the arguments that you have seen: turntable show SESSION --payload prints it. Required to approve a call."`
	Option     string `help:"ID of the option that is chosen."`
	Answer     string `help:"The answer, as JSON."`
	Edit       string `help:"Arguments to run instead, as JSON."`
	Reason     string `help:"Reason, which the model is told."`
	Scope      string `enum:",once,session,agent" default:"" help:"What an approval counts for: once, session or agent."`
	By         string `help:"Who decides (default: your account on this machine)."`
	NoWait     bool   `help:"Do not wait for the outcome."`
}

// decideResult is the JSON of the command decide.
type decideResult struct {
	Agent   string            `json:"agent"`
	GateID  string            `json:"gate_id"`
	Outcome *gate.OutcomeView `json:"outcome"` // null with --no-wait
}

func (c *decideCommand) Run(ctx context.Context, o *operator) error {
	for flag, value := range map[string]string{"--answer": c.Answer, "--edit": c.Edit} {
		if value != "" && !jsontext.Value(value).IsValid() {
			return usageError{fmt.Errorf("%s is not JSON", flag)}
		}
	}
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	reads, err := o.reader(ctx, tableOf(cluster.catalog.GateGroup()))
	if err != nil {
		return err
	}
	defer reads.close()
	all := newRows(gate.TableCodec(), func(session string, row any) ([]gate.View, error) {
		views, err := gate.Gates(session, row)
		return slices.DeleteFunc(views, func(v gate.View) bool { return v.GateID != c.Gate }), err
	})
	if err := reads.all(ctx, all.take); err != nil {
		return err
	}
	g := find(all.byKey, c.Gate)
	if g == nil {
		return fmt.Errorf("%s has no gate %q: see turntable gates; one that ended long ago is forgotten", o.agent, c.Gate)
	}
	d := c.decision(*g)
	if g.Outcome != nil {
		return c.report(o, g, d)
	}
	if err := c.check(*g, d); err != nil {
		return err
	}
	if err := gate.Decide(ctx, cluster.to, o.agent, d); err != nil {
		return publishFailed(ctx, err)
	}
	if c.NoWait {
		return c.write(o, nil)
	}
	o.waiting("waiting until %s has applied the decision", cluster.catalog.GateGroup())
	ended := func() bool {
		g = find(all.byKey, c.Gate)
		return g == nil || g.Outcome != nil
	}
	if err := reads.await(ctx, d.SessionID, all.only(d.SessionID), ended); err != nil {
		return lateGroup(ctx, err, string(cluster.catalog.GateGroup()))
	}
	if g == nil {
		return fmt.Errorf("the gate %s is gone: its session was purged", c.Gate)
	}
	return c.report(o, g, d)
}

func find(sessions map[string][]gate.View, id string) *gate.View {
	for _, views := range sessions {
		for i := range views {
			if views[i].GateID == id {
				return &views[i]
			}
		}
	}
	return nil
}

// decision returns the decision of the command. Its ID depends on the decision only, so that a repeat has no effect.
func (c *decideCommand) decision(g gate.View) topics.GateDecision {
	by := c.By
	if by == "" {
		by = account()
	}
	d := topics.GateDecision{
		GateID: g.GateID, SessionID: g.SessionID, Verdict: topics.GateVerdict(c.Verdict), OptionID: c.Option, Reason: c.Reason,
		Scope: topics.GateScope(c.Scope), ArgsSHA256: c.ArgsSHA256, By: by, Via: "operate",
	}
	if c.Edit != "" {
		d.EditedArgs = topics.Raw(c.Edit)
	}
	if c.Answer != "" {
		d.Answer = topics.Raw(c.Answer)
	}
	parts, _ := json.Marshal([]string{g.GateID, c.Verdict, c.Option, c.Answer, c.Edit, c.Reason, c.Scope, by})
	sum := sha256.Sum256(parts)
	d.DecisionID = hex.EncodeToString(sum[:])
	return d
}

// check refuses what the group would refuse, and an approval of arguments that were not seen.
func (c *decideCommand) check(g gate.View, d topics.GateDecision) error {
	if d.Verdict == topics.VerdictApprove && d.ArgsSHA256 == "" && g.ArgsSHA256 != "" {
		return fmt.Errorf("an approval needs --args-sha256: turntable show %s --payload prints the arguments and their digest", g.SessionID)
	}
	if err := g.Check(d); err != nil {
		return fmt.Errorf("%w: see turntable show %s --payload; the gate allows %v", err, g.SessionID, g.Allowed)
	}
	return nil
}

// report writes the outcome, and fails if it is that of another decision.
func (c *decideCommand) report(o *operator, g *gate.View, d topics.GateDecision) error {
	if g.Outcome.DecisionID != d.DecisionID {
		return fmt.Errorf("the gate %s has ended before, as %s (%s), so the decision does not count; see turntable gates --all",
			g.GateID, g.Outcome.Status, g.Outcome.Cause)
	}
	v := withoutTexts(*g)
	return c.write(o, v.Outcome)
}

func (c *decideCommand) write(o *operator, outcome *gate.OutcomeView) error {
	return o.print(decideResult{o.agent, c.Gate, outcome}, func(t *columns) {
		if outcome == nil {
			t.line("written", c.Gate)
			return
		}
		t.line(outcome.Status, c.Gate, "by "+outcome.By, t.at(outcome.EndedAt))
	})
}

// account is the account of the person on this machine.
func account() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return strings.Join([]string{name, host}, "@")
}
