package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/gaterow"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/topics"
)

func onChannels(c *Config) { c.Channels = true }

const gateID = "1a2b3c4d5e6f70809aabbccddeeff001"

// from makes a request one of a message in the room, of u1.
func from(r *topics.GateRequest) { r.Channel = topics.EncodeOrigin(inRoom("", "u1")) }

// said returns what a person says: a command with a code.
func (p *harness) said(code string, by topics.Origin, verdict topics.GateVerdict, change ...func(*topics.GateDecision)) decided {
	p.TB.Helper()
	d := topics.GateDecision{
		GateID: code, SessionID: p.key, DecisionID: fmt.Sprint("said-", p.Offset), Verdict: verdict, By: by.User, Via: "bridge",
		Channel: topics.EncodeOrigin(by),
	}
	for _, f := range change {
		f(&d)
	}
	return p.decided(d)
}

func pressed(d *topics.GateDecision)  { d.Pressed = true }
func approver(d *topics.GateDecision) { d.Approver = true }

// messages returns the messages to channels among effects, by ID.
func messages(es effects) map[string]topics.Output {
	found := map[string]topics.Output{}
	for _, e := range es {
		if v, ok := e.Value.(topics.Output); ok {
			found[e.ID] = v
		}
	}
	return found
}

// answered returns the text of the only effect, which answers a decision.
func answered(t tb, es effects) string {
	t.Helper()
	require.Len(t, es, 1)
	require.True(t, strings.HasPrefix(es[0].ID, "gate-answer-"), "%v", es)
	return es[0].Value.(topics.Output).Content
}

func TestRequestOfAChannelIsAskedWhereItCameFrom(t *testing.T) {
	p := newHarness(t, onChannels)
	es := p.Handle(p.request(gateID, from))
	require.Len(t, es, 1)
	require.Equal(t, "gate-ask-"+gateID, es[0].ID)
	require.Equal(t, "s1", es[0].Key)
	ask := messages(es)["gate-ask-"+gateID]
	require.Equal(t, topics.EncodeOrigin(inRoom("", "u1")), topics.OriginOf(ask.ReplyTo))
	require.JSONEq(t, `{"gate_id":"`+gateID+`","tool":"pay","expires_ms":1790000600000}`, topics.GateAskOf(ask.ReplyTo).String())
	require.Equal(t, "quay", ask.SourceAgent)
	require.Equal(t, "The agent asks for approval to run `pay`.\n\nArguments:\n```\n{\n  \"cents\": 250\n}\n```\n\n"+
		"To approve: `/approve 1a2b3c4d`\nTo deny: `/deny 1a2b3c4d`\n\nThe request expires at 14:23 UTC on 21 September 2026.",
		ask.Content)
	require.EqualValues(t, rowChannels, p.Read().Version, "an older build would accept decisions from anywhere")
	require.Empty(t, p.Handle(p.request(gateID, from)), "a repeat")

	es = p.settle(p.said("1a2b3c4d", inRoom("", "u1"), topics.VerdictApprove))
	o := outcome(t, es)
	require.Equal(t, topics.GateApproved, o.Status)
	require.Equal(t, topics.CauseHuman, o.Cause)
	require.Equal(t, "u1", o.By)
	end := messages(es)["gate-end-"+gateID]
	require.Equal(t, "Approved by `u1`: `pay` (1a2b3c4d).", end.Content)
	require.Equal(t, topics.EncodeOrigin(inRoom("", "u1")), topics.OriginOf(end.ReplyTo))
	require.Nil(t, topics.GateAskOf(end.ReplyTo))
	require.EqualValues(t, rowVersion, p.Read().Version)
}

// mailed returns the origin of a mail.
func mailed(proof topics.Proof) topics.Origin {
	return topics.Origin{Channel: "email", Account: "desk", Recipient: "ada@example.org", Thread: "<m1>", User: "ada@example.org", Proof: proof}
}

func TestMailThatProvesNothingDecidesNothing(t *testing.T) {
	for _, proof := range []topics.Proof{topics.ProofNone, "new"} {
		p := newHarness(t, onChannels)
		es := p.Handle(p.request(gateID, func(r *topics.GateRequest) { r.Channel = topics.EncodeOrigin(mailed(proof)) }))
		ask := messages(es)["gate-ask-"+gateID]
		require.Contains(t, ask.Content, "It cannot be decided here, because nothing proves who writes here. Decide at `/api/gates/"+gateID+"`")
		require.NotContains(t, ask.Content, "/approve")
		require.Nil(t, topics.GateAskOf(ask.ReplyTo))
		for _, d := range []decided{
			p.said("", mailed(proof), topics.VerdictApprove), p.said("1a2b3c4d", mailed(proof), topics.VerdictApprove),
			p.said(gateID, mailed(proof), topics.VerdictApprove, pressed), p.said("1a2b3c4d", mailed(proof), topics.VerdictApprove, approver),
			p.said(gateID, mailed(proof), topics.VerdictDeny),
		} {
			require.Equal(t, textNoProof, answered(t, p.settle(d)))
		}
		require.Equal(t, topics.GateApproved, outcome(t, p.Handle(p.approve(gateID))).Status, "the door decides")
	}
}

func TestAuthenticatedMailNeedsTheCodeOfTheQuestion(t *testing.T) {
	ask := func() (*harness, string) {
		p := newHarness(t, onChannels)
		es := p.Handle(p.request(gateID, func(r *topics.GateRequest) { r.Channel = topics.EncodeOrigin(mailed(topics.ProofCode)) }))
		said := messages(es)["gate-ask-"+gateID]
		require.Nil(t, topics.GateAskOf(said.ReplyTo), "no buttons")
		_, rest, found := strings.Cut(said.Content, "/approve ")
		require.True(t, found, said.Content)
		require.EqualValues(t, rowProof, p.Read().Version, "an older build would accept decisions without a code")
		return p, rest[:8]
	}
	by := mailed(topics.ProofCode)
	p, code := ask()
	require.NotEqual(t, gateID[:8], code, "the writer of the mail could derive it")
	require.Equal(t, textNeedsCode, answered(t, p.settle(p.said("", by, topics.VerdictApprove))))
	require.Equal(t, textUnknown, answered(t, p.settle(p.said(gateID[:8], by, topics.VerdictApprove))))
	require.Equal(t, textUnknown, answered(t, p.settle(p.said(code[:4], by, topics.VerdictApprove))))
	require.Equal(t, textNoProof, answered(t, p.settle(p.said(gateID, by, topics.VerdictApprove, pressed))))
	other := by
	other.User = "bob@example.org"
	require.Equal(t, textNotYours, answered(t, p.settle(p.said(code, other, topics.VerdictApprove))))
	require.Equal(t, topics.GateApproved, outcome(t, p.settle(p.said(strings.ToUpper(code), by, topics.VerdictApprove))).Status)

	p, code = ask()
	for range maxWrongCodes {
		require.Equal(t, textUnknown, answered(t, p.settle(p.said("00000000", by, topics.VerdictApprove))))
	}
	require.Equal(t, textUnknown, answered(t, p.settle(p.said(code, by, topics.VerdictApprove))), "guesses are bounded")
	require.Equal(t, topics.GateDenied, outcome(t, p.Handle(p.decision(gateID, "d1", topics.VerdictDeny))).Status)
}

// A person who was shown the beginning of the arguments must not approve the rest.
func TestArgumentsThatWereNotShownAreNotApprovedOnAChannel(t *testing.T) {
	args := topics.Raw(`{"command":"echo ` + strings.Repeat("a", 3000) + `; touch x"}`)
	large := func(r *topics.GateRequest) { r.Args, r.ArgsSHA256 = args, topics.ArgsSHA256(args) }
	for name, say := range map[string]func(*harness) decided{
		"command": func(p *harness) decided { return p.said("1a2b", inRoom("", "u1"), topics.VerdictApprove) },
		"no code": func(p *harness) decided { return p.said("", inRoom("", "u1"), topics.VerdictApprove) },
		"button":  func(p *harness) decided { return p.said(gateID, inRoom("", "u1"), topics.VerdictApprove, pressed) },
		"approver": func(p *harness) decided {
			return p.said(gateID, inRoom("", "u2"), topics.VerdictApprove, pressed, approver)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t, onChannels)
			p.Handle(p.request(gateID, from, large))
			require.Equal(t, textNotShown, answered(t, p.settle(say(p))))
			require.Len(t, p.Read().Open, 1)
			digest := func(d *topics.GateDecision) { d.ArgsSHA256 = topics.ArgsSHA256(args) }
			o := outcome(t, p.settle(p.said(gateID, inRoom("", "u1"), topics.VerdictApprove, pressed, digest)))
			require.Equal(t, topics.GateApproved, o.Status, "who repeats the digest has read it elsewhere")
		})
	}
	p := newHarness(t, onChannels)
	p.Handle(p.request(gateID, from, large))
	require.Equal(t, topics.GateDenied, outcome(t, p.settle(p.said("1a2b", inRoom("", "u1"), topics.VerdictDeny))).Status)

	p = newHarness(t, onChannels)
	p.Handle(p.said(gateID, inRoom("", "u1"), topics.VerdictApprove, pressed))
	p.settle(p.request(gateID, from, large))
	require.Len(t, p.Read().Open, 1, "the decision was held")
}

func TestOnlyGatesThatWaitForAPersonAreAsked(t *testing.T) {
	for name, change := range map[string]func(*harness, *topics.GateRequest){
		"no channel":            func(_ *harness, r *topics.GateRequest) { r.Channel = nil },
		"not enabled":           func(p *harness, _ *topics.GateRequest) { p.config.Channels = false },
		"shadow":                func(_ *harness, r *topics.GateRequest) { r.Shadow = true },
		"allowed by the policy": func(_ *harness, r *topics.GateRequest) { r.Tool, r.Effect = "look", "" },
		"denied by the policy":  func(_ *harness, r *topics.GateRequest) { r.Tool = "drop" },
		"invalid origin":        func(_ *harness, r *topics.GateRequest) { r.Channel = topics.Raw(`{"channel":"slack"}`) },
		"granted": func(p *harness, _ *topics.GateRequest) {
			p.grants = &gaterow.Grants{Grants: []*gaterow.Grant{{Id: "g9", Agent: "quay", Tool: "pay", By: "ines"}}}
		},
		"withdrawn before": func(p *harness, _ *topics.GateRequest) { p.Handle(p.withdrawal(gateID, topics.CauseSuperseded)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t, onChannels, withRules(
				approval.Rule{Tool: "look", Effect: approval.Allow}, approval.Rule{Tool: "drop", Effect: approval.Deny}))
			r := p.request(gateID, from)
			change(p, &r.Request)
			require.Empty(t, messages(p.settle(r)))
		})
	}
	p := newHarness(t, onChannels)
	o := outcome(t, p.Handle(p.request(gateID, func(r *topics.GateRequest) { r.Channel = topics.Raw(`{"channel":"slack"}`) })))
	require.Equal(t, topics.CauseInvalid, o.Cause, "no one can be asked there")
}

// The grant was revoked, or the request turned dangerous, before its record was read.
func TestPersonIsAskedIfAGrantDoesNotSuffice(t *testing.T) {
	p := newHarness(t, onChannels)
	p.grants = &gaterow.Grants{Grants: []*gaterow.Grant{{Id: "g9", Agent: "quay", Tool: "pay", By: "ines"}}}
	es := p.Handle(p.request(gateID, from))
	require.Empty(t, messages(es))
	require.Equal(t, textNone, answered(t, p.Handle(p.said("", inRoom("", "u1"), topics.VerdictDeny))), "no one was asked yet")
	p.config.Policy.Rules = []approval.Rule{{Tool: "pay", Effect: approval.Ask, Dangerous: true}}
	es = p.Handle(p.decided(closes(es)[0]))
	require.Contains(t, messages(es), "gate-ask-"+gateID)
}

func TestEveryEndIsToldWhereItWasAsked(t *testing.T) {
	for text, end := range map[string]func(p *harness) effects{
		"Denied by `u1`: `pay` (1a2b3c4d).": func(p *harness) effects {
			return p.settle(p.said("", inRoom("", "u1"), topics.VerdictDeny))
		},
		"Approved by `ines`: `pay` (1a2b3c4d).": func(p *harness) effects { return p.Handle(p.approve(gateID)) },
		"Expired without a decision: `pay` (1a2b3c4d).": func(p *harness) effects {
			return p.advance(10 * time.Minute)
		},
		"Withdrawn: `pay` (1a2b3c4d).": func(p *harness) effects {
			return p.settle(p.withdrawal(gateID, topics.CauseSuperseded))
		},
		"Denied by the policy: `pay` (1a2b3c4d).": func(p *harness) effects {
			p.config.Policy.Default = approval.Deny
			return p.settle(p.said("", inRoom("", "u1"), topics.VerdictApprove))
		},
	} {
		p := newHarness(t, onChannels)
		p.Handle(p.request(gateID, from))
		es := end(p)
		outcome(t, es)
		require.Equal(t, text, messages(es)["gate-end-"+gateID].Content)
		require.Len(t, messages(es), 1)
	}
}

func TestDecisionFromElsewhereNeverApproves(t *testing.T) {
	other := func(change func(*topics.Origin)) topics.Origin {
		o := inRoom("", "u1")
		change(&o)
		return o
	}
	for name, c := range map[string]struct {
		by   topics.Origin
		text string
	}{
		"another person":         {inRoom("", "u2"), textNotYours},
		"no person":              {inRoom("", ""), textNotYours},
		"another thread":         {inRoom("17.5", "u1"), textUnknown},
		"another room":           {other(func(o *topics.Origin) { o.Recipient = "C8" }), textUnknown},
		"another account":        {other(func(o *topics.Origin) { o.Account = "second" }), textUnknown},
		"another channel":        {other(func(o *topics.Origin) { o.Channel = "teams" }), textUnknown},
		"a name is not a person": {other(func(o *topics.Origin) { o.User, o.UserName = "u3", "u1" }), textNotYours},
	} {
		t.Run(name, func(t *testing.T) {
			p := newHarness(t, onChannels)
			p.Handle(p.request(gateID, from))
			require.Equal(t, c.text, answered(t, p.Handle(p.said(gateID, c.by, topics.VerdictApprove, pressed))))
			require.Equal(t, c.text, answered(t, p.Handle(p.said("1a2b3c4d", c.by, topics.VerdictApprove))))
			es := p.Handle(p.said("", c.by, topics.VerdictApprove))
			require.Equal(t, strings.Replace(c.text, textUnknown, textNone, 1), answered(t, es))
			require.Equal(t, topics.EncodeOrigin(c.by), topics.OriginOf(es[0].Value.(topics.Output).ReplyTo), "it is told to who asked")
			for _, code := range []string{gateID, "1a2b3c4d", ""} {
				es := p.Handle(p.said(code, c.by, topics.VerdictApprove, approver, func(d *topics.GateDecision) { d.Pressed = code == gateID }))
				if c.text == textUnknown {
					answered(t, es) // approvers too decide in the place only
				}
			}
		})
	}
}

// The record that the group writes is checked again when it is read, like any other.
func TestResolvedDecisionIsCheckedAgain(t *testing.T) {
	p := newHarness(t, onChannels)
	p.Handle(p.request(gateID, from))
	for _, by := range []topics.Origin{inRoom("", "u2"), inRoom("17.5", "u1")} {
		answered(t, p.Handle(p.said(gateID, by, topics.VerdictApprove, pressed, func(d *topics.GateDecision) { d.Via = via })))
	}
}

func TestApproverDecidesForOthersInTheSamePlace(t *testing.T) {
	for _, by := range []topics.Origin{inRoom("", "u2"), inRoom("", "")} {
		p := newHarness(t, onChannels)
		p.Handle(p.request(gateID, from))
		require.Equal(t, topics.GateApproved, outcome(t, p.settle(p.said("", by, topics.VerdictApprove, approver))).Status)
	}
	p := newHarness(t, onChannels)
	p.Handle(p.request(gateID, func(r *topics.GateRequest) { r.Channel = topics.EncodeOrigin(inRoom("", "")) }))
	require.Equal(t, textNotYours, answered(t, p.Handle(p.said("", inRoom("", ""), topics.VerdictApprove))),
		"no one is known to be the person who asked")
}

func TestCodeNamesAGate(t *testing.T) {
	for code, found := range map[string]bool{
		"": true, "1a2b": true, "1A2B3C4D": true, gateID: true,
		"1a2": false, "1a2c": false, "5e6f7080": false, gateID + "0": false, "1a2b 3c4d": false,
	} {
		p := newHarness(t, onChannels)
		p.Handle(p.request(gateID, from))
		es := p.settle(p.said(code, inRoom("", "u1"), topics.VerdictApprove))
		if found {
			require.Equal(t, topics.GateApproved, outcome(t, es).Status, code)
			continue
		}
		require.Equal(t, textUnknown, answered(t, es), code)
	}
}

func TestAmbiguousCodeApprovesNothing(t *testing.T) {
	p := newHarness(t, onChannels)
	near, far := "1a2b3c4d00000000", "ffff0000"
	for _, id := range []string{gateID, near, far} {
		p.Handle(p.request(id, from))
	}
	text := answered(t, p.Handle(p.said("", inRoom("", "u1"), topics.VerdictApprove)))
	require.Equal(t, textWhich+"\n`"+gateID+"` for `pay`\n`"+near+"` for `pay`\n`ffff0000` for `pay`", text)
	require.NotContains(t, answered(t, p.Handle(p.said("1a2b3c4d", inRoom("", "u1"), topics.VerdictApprove))), far)
	require.Equal(t, far, outcome(t, p.settle(p.said("ffff", inRoom("", "u1"), topics.VerdictApprove))).GateID)
	require.Equal(t, near, outcome(t, p.settle(p.said(near, inRoom("", "u1"), topics.VerdictApprove))).GateID)
	require.Equal(t, gateID, outcome(t, p.settle(p.said("1a2b3c4d", inRoom("", "u1"), topics.VerdictApprove))).GateID)
	require.Equal(t, textNone, answered(t, p.Handle(p.said("", inRoom("", "u1"), topics.VerdictApprove))))

	for i := range maxOffered + 3 {
		p.Handle(p.request(strings.Repeat(string(rune('a'+i)), 12), from))
	}
	require.Contains(t, answered(t, p.Handle(p.said("", inRoom("", "u1"), topics.VerdictApprove))), "(3 more)")
}

func TestGateIDIsNotAmbiguousWithALongerOne(t *testing.T) {
	p := newHarness(t, onChannels)
	p.Handle(p.request("aaaa", from))
	p.Handle(p.request("aaaab", from))
	require.Equal(t, "aaaa", outcome(t, p.settle(p.said("aaaa", inRoom("", "u1"), topics.VerdictApprove))).GateID)
}

// The request was written after the person had written: another request was meant.
func TestCommandWithoutACodeMeansNoLaterRequest(t *testing.T) {
	p := newHarness(t, onChannels)
	early := p.said("", inRoom("", "u1"), topics.VerdictApprove)
	p.Now = p.Now.Add(time.Second)
	p.Handle(p.request(gateID, from))
	require.Equal(t, textNone, answered(t, p.Handle(early)))
}

// After a crash, a command was resolved a second time, to another gate.
func TestCommandApprovesOneGate(t *testing.T) {
	p := newHarness(t, onChannels)
	p.Handle(p.request("aaaa0000", from))
	said := p.said("", inRoom("", "u1"), topics.VerdictApprove)
	first := resolves(p.Handle(said))[0]
	require.Equal(t, "aaaa0000", first.GateID)

	p.Row = nil
	p.Handle(p.request("bbbb0000", from))
	second := resolves(p.Handle(said))[0]
	require.Equal(t, "bbbb0000", second.GateID)
	require.Empty(t, outcomes(p.Handle(p.decided(first))), "it is held for its request")
	require.Empty(t, p.Handle(p.decided(second)))
	require.Empty(t, p.Handle(said), "a repeat")
	es := p.Handle(p.request("aaaa0000", from))
	require.Equal(t, "aaaa0000", outcome(t, es).GateID)
	require.Contains(t, messages(es), "gate-end-aaaa0000", "the person was asked before the crash")
	require.Len(t, p.Read().Open, 1)
}

func TestCodeOfARequestThatDidNotArriveIsAnswered(t *testing.T) {
	p := newHarness(t, onChannels)
	require.Equal(t, textUnknown, answered(t, p.Handle(p.said("1a2b3c4d", inRoom("", "u1"), topics.VerdictApprove))))
	require.Nil(t, p.Row)
	require.NotEmpty(t, messages(p.Handle(p.request(gateID, from))), "and approves nothing later")
	require.Len(t, p.Read().Open, 1)
}

// A button has the whole ID. One of another session's gate is answered; it is held in case that its request follows.
func TestButtonOfAnUnknownGateIsAnsweredAndHeld(t *testing.T) {
	p := newHarness(t, onChannels)
	require.Equal(t, textUnknown, answered(t, p.Handle(p.said(gateID, inRoom("", "u1"), topics.VerdictApprove, pressed))))
	require.EqualValues(t, rowChannels, p.Read().Version)
	p.Handle(p.said(gateID, inRoom("17.5", "u1"), topics.VerdictApprove, pressed))
	es := p.Handle(p.request(gateID, func(r *topics.GateRequest) { r.Channel = topics.EncodeOrigin(inRoom("17.5", "u9")) }))
	require.Empty(t, outcomes(es), "held decisions are checked like others")
	require.Len(t, messages(es), 3, "the question, and an answer to each")

	p = newHarness(t, onChannels)
	p.Handle(p.said(gateID, inRoom("", "u1"), topics.VerdictApprove, pressed))
	require.Equal(t, topics.GateApproved, outcome(t, p.Handle(p.request(gateID, from))).Status)

	p = newHarness(t, onChannels)
	p.Handle(p.said(gateID, inRoom("", "u1"), topics.VerdictApprove, pressed))
	require.Equal(t, reasonNoRequest, letter(t, p.advance(p.config.Hold)))
}

func TestSecondDecisionIsTold(t *testing.T) {
	p := newHarness(t, onChannels)
	p.Handle(p.request(gateID, from))
	one := p.said(gateID, inRoom("", "u1"), topics.VerdictDeny, pressed)
	outcome(t, p.Handle(one))
	require.Empty(t, p.Handle(one), "a repeat")
	require.Equal(t, textUnknown, answered(t, p.Handle(p.said(gateID, inRoom("", "u1"), topics.VerdictApprove, pressed))))
	require.Equal(t, textUnknown, answered(t, p.Handle(p.said("1a2b3c4d", inRoom("", "u1"), topics.VerdictApprove))))
}

func TestDecisionAfterTheDeadlineIsTold(t *testing.T) {
	p := newHarness(t, onChannels)
	p.Handle(p.request(gateID, from))
	p.Now = p.Now.Add(10 * time.Minute)
	es := p.settle(p.said("", inRoom("", "u1"), topics.VerdictApprove))
	require.Equal(t, topics.GateTimedOut, outcome(t, es).Status)
	require.Contains(t, messages(es)["gate-end-"+gateID].Content, "Expired")
}

func TestDecisionThatAChannelCannotMakeIsDeadLettered(t *testing.T) {
	p := newHarness(t, onChannels)
	p.Handle(p.request(gateID, from))
	u1 := inRoom("", "u1")
	require.Equal(t, reasonVerdict, letter(t, p.Handle(p.said(gateID, u1, topics.VerdictRevoke, pressed))))
	require.Equal(t, reasonVerdict, letter(t, p.Handle(p.said(gateID, u1, topics.VerdictClose, pressed,
		func(d *topics.GateDecision) { d.Cause = topics.CauseGrant }))))
	require.Equal(t, reasonChannel, letter(t, p.Handle(p.said(gateID, u1, topics.VerdictApprove,
		func(d *topics.GateDecision) { d.Channel = topics.Raw(`{"channel":"slack"}`) }))))
	require.Equal(t, reasonLongID, letter(t, p.Handle(p.said(gateID, u1, topics.VerdictApprove,
		func(d *topics.GateDecision) { d.DecisionID = strings.Repeat("x", maxID+1) }))))
	require.Equal(t, textNotAllowed, answered(t, p.Handle(p.said(gateID, u1, topics.VerdictAnswer, pressed,
		func(d *topics.GateDecision) { d.Answer = topics.Raw(`1`) }))))
	require.Len(t, p.Read().Open, 1)
	p.config.Channels = false
	require.Equal(t, reasonChannels, letter(t, p.Handle(p.said(gateID, u1, topics.VerdictApprove, pressed))))
	require.Empty(t, messages(p.Handle(p.approve(gateID))), "the topic is not among the group's outputs")
}

func TestGateOfADoorIsNotDecidedOnAChannel(t *testing.T) {
	p := newHarness(t, onChannels)
	p.Handle(p.request(gateID))
	for _, code := range []string{"", "1a2b3c4d"} {
		answered(t, p.Handle(p.said(code, inRoom("", "u1"), topics.VerdictApprove, approver)))
	}
	require.Equal(t, textUnknown, answered(t, p.Handle(p.said(gateID, inRoom("", "u1"), topics.VerdictApprove, approver, pressed))))
}
