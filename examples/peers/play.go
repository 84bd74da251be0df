package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

// play is the example in progress.
type play struct {
	screen           *screen
	client           client
	keys             string // path of the file of keys
	curl             string // a token of acme
	hq, acme, globex *member
	children         *processes
	journals         map[*member]*journal
	running          map[*member]*child
	followers        sync.WaitGroup
}

// errUnexpected is wrapped by the error of a step that did not go as expected.
var errUnexpected = errors.New("this is not what was expected")

// steps are the steps in their order.
func (p *play) steps() []func(ctx context.Context) error {
	return []func(ctx context.Context) error{
		p.cards, p.delegate, p.offline, p.needsApproval, p.revoked, p.loop, p.audit,
	}
}

// open starts an instance and waits until it is ready.
func (p *play) open(ctx context.Context, members ...*member) error {
	for _, m := range members {
		c, err := p.children.start(m.id, m.environment(p.keys)...)
		if err != nil {
			return err
		}
		p.running[m] = c
	}
	for _, m := range members {
		if err := p.running[m].awaitReady(ctx); err != nil {
			return err
		}
		var err error
		if p.journals[m], err = follow(ctx, p.running[m], &p.followers); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) cards(ctx context.Context) error {
	p.screen.title("The cards: what the instances say about themselves")
	for _, m := range []*member{p.hq, p.acme} {
		if err := p.card(ctx, m); err != nil {
			return err
		}
	}
	_, err := p.client.card(ctx, p.globex)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: want no connection to globex: %w", errUnexpected, err)
	}
	p.screen.line(p.globex.id, "is not running")
	return nil
}

func (p *play) card(ctx context.Context, m *member) error {
	card, err := p.client.card(ctx, m)
	if err != nil {
		return err
	}
	can := []string{}
	for _, c := range []struct {
		name string
		is   bool
	}{{"delegate", card.Capabilities.Delegate}, {"idempotent", card.Capabilities.Idempotent}, {"async", card.Capabilities.Async}, {"cancel", card.Capabilities.Cancel}} {
		if c.is {
			can = append(can, c.name)
		}
	}
	agents := []string{}
	for _, a := range card.Agents {
		agents = append(agents, a.ID)
	}
	p.screen.line(m.id, "is %q, has the agents %v and the capabilities %v", card.InstanceName, agents, can)
	return expect("the card", fmt.Sprintf("%s %v %v", card.InstanceID, agents, can),
		"^"+m.id+` \[clerk\] \[delegate idempotent async cancel\]$`)
}

func (p *play) delegate(ctx context.Context) error {
	p.screen.title("HQ delegates a task to acme")
	if err := p.ask(ctx, "delegate", "Ask acme: How many invoices are open?"); err != nil {
		return err
	}
	receipt, err := p.journals[p.hq].attempt(ctx, "delegate", 1)
	if err != nil {
		return err
	}
	if err := p.sent(p.hq, receipt, topics.OutcomeDelivered, 0); err != nil {
		return err
	}
	return p.answer(ctx, "delegate", `^success: `, `^The peer says: 3 invoices are open\.$`)
}

func (p *play) offline(ctx context.Context) error {
	p.screen.title("Globex is offline and returns")
	if err := p.ask(ctx, "offline", "Ask globex: How many invoices are open?"); err != nil {
		return err
	}
	for n := int64(1); n <= 2; n++ {
		receipt, err := p.journals[p.hq].attempt(ctx, "offline", n)
		if err != nil {
			return err
		}
		if err := p.sent(p.hq, receipt, topics.OutcomeFailed, 0); err != nil {
			return err
		}
	}
	if err := p.open(ctx, p.globex); err != nil {
		return err
	}
	p.screen.line(p.globex.id, "has started")
	if err := p.card(ctx, p.globex); err != nil {
		return err
	}
	receipt, err := p.journals[p.hq].delivered(ctx, "offline")
	if err != nil {
		return err
	}
	if err := p.sent(p.hq, receipt, topics.OutcomeDelivered, 0); err != nil {
		return err
	}
	return p.answer(ctx, "offline", `^success: `, `^The peer says: 7 invoices are open\.$`)
}

func (p *play) needsApproval(ctx context.Context) error {
	p.screen.title("A task needs an approval at acme")
	if err := p.ask(ctx, "approval", "Ask acme: Pay 12.50 to mira."); err != nil {
		return err
	}
	return p.answer(ctx, "approval", `^error \(rejected\): `, `^That failed \(rejected\): pay: May this be paid\?$`)
}

func (p *play) revoked(ctx context.Context) error {
	p.screen.title("Acme revokes the token of HQ")
	p.acme.revoke(p.hq.id)
	if err := p.acme.write(); err != nil {
		return err
	}
	p.screen.line(p.acme.id, "has removed the token from its file")
	if err := p.ask(ctx, "revoked", "Ask acme: How many invoices are open?"); err != nil {
		return err
	}
	receipt, err := p.journals[p.hq].attempt(ctx, "revoked", 1)
	if err != nil {
		return err
	}
	if err := p.sent(p.hq, receipt, topics.OutcomeRefused, 401); err != nil {
		return err
	}
	if err := p.answer(ctx, "revoked", `^error \(peer_refused\): `, `^That failed \(peer_refused\): `); err != nil {
		return err
	}
	return p.connect()
}

// connect gives HQ a token of acme, with which its tasks may be delegated further.
func (p *play) connect() error {
	p.hq.send(p.acme, p.acme.accept(p.hq.id, peer.ToolName))
	return errors.Join(p.acme.write(), p.hq.write())
}

func (p *play) loop(ctx context.Context) error {
	p.screen.title("Acme delegates a task of HQ back to HQ")
	p.screen.line(p.acme.id, "has given HQ another token, which may use %s", peer.ToolName)
	if err := p.ask(ctx, "loop", "Ask acme: Ask hq: How many invoices are open?"); err != nil {
		return err
	}
	receipt, err := p.journals[p.hq].attempt(ctx, "loop", 1)
	if err != nil {
		return err
	}
	session, err := sessionOf(receipt)
	if err != nil {
		return err
	}
	told, err := p.journals[p.acme].told(ctx, session)
	if err != nil {
		return err
	}
	if err := expect("the tool result of acme", summary(told), `^error \(peer_refused\): `); err != nil {
		return err
	}
	back, err := p.journals[p.acme].attempt(ctx, session, 1)
	if err != nil {
		return err
	}
	if err := p.sent(p.acme, back, topics.OutcomeRefused, 409); err != nil {
		return err
	}
	p.screen.line(p.acme.id, "was told: %s", summary(told))
	return p.answer(ctx, "loop", `^success: `, `^The peer says: That failed \(peer_refused\): .*passed this instance already`)
}

// sent prints how an attempt of an instance ended, and compares it with what is expected. The status is 0 unless the peer
// refused the task.
func (p *play) sent(by *member, r topics.Receipt, outcome topics.Outcome, status int64) error {
	how := string(r.Outcome)
	if code, given := topics.Lookup(r.Response, "code"); given {
		how += " (" + topics.Text(code) + ")"
	}
	if r.Status != 0 {
		how += fmt.Sprintf(", status %d", r.Status)
	}
	p.screen.line(by.id, "sent attempt %d to %s: %s", r.Attempt, r.Route.Service, how)
	if r.Outcome != outcome || r.Status != status {
		return fmt.Errorf("%w: attempt %d is %s, want %s and status %d", errUnexpected, r.Attempt, how, outcome, status)
	}
	return nil
}

// sessionOf returns the session in which the peer ran a task.
func sessionOf(receipt topics.Receipt) (string, error) {
	reply, _ := topics.Lookup(receipt.Response, "reply")
	session, given := topics.Lookup(reply, "peerSessionId")
	if !given {
		return "", fmt.Errorf("%w: a reply without a session", errUnexpected)
	}
	return topics.Text(session), nil
}

// ask sends a message to the agent of HQ.
func (p *play) ask(ctx context.Context, session, content string) error {
	p.screen.line("user", "%s", content)
	return p.client.ask(ctx, p.hq, session, content)
}

// answer waits for the tool result and the answer of a turn of HQ, prints them, and compares them with patterns.
func (p *play) answer(ctx context.Context, session, wantResult, wantAnswer string) error {
	told, err := p.journals[p.hq].told(ctx, session)
	if err != nil {
		return err
	}
	p.screen.line("model", "was told: %s", summary(told))
	text, err := p.journals[p.hq].answer(ctx, session)
	if err != nil {
		return err
	}
	p.screen.line("agent", "%s", oneLine(text))
	return errors.Join(expect("the tool result", summary(told), wantResult), expect("the answer", text, wantAnswer))
}

// summary returns the status, the reason and the first line of a tool result.
func summary(r topics.ToolUseResult) string {
	status := "no status"
	if r.Status != nil {
		status = *r.Status
	}
	if reason, given := topics.Lookup(r.Result, "reason"); given {
		status += " (" + topics.Text(reason) + ")"
	}
	text := string(r.Result)
	for _, name := range []string{"result", "error"} {
		if value, given := topics.Lookup(r.Result, name); given {
			text, _, _ = strings.Cut(topics.Text(value), "\n")
		}
	}
	return status + ": " + oneLine(text)
}

// oneLine returns a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// expect compares a text with a pattern.
func expect(what, got, pattern string) error {
	if regexp.MustCompile(pattern).MatchString(got) {
		return nil
	}
	return fmt.Errorf("%w: %s is %q, want %s", errUnexpected, what, oneLine(got), pattern)
}
