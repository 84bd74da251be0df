package topics

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// fuzz feeds a format with anything. It goes past the codec, which would turn a panic into poison. What is read must be
// written as JSON, and read again to the same.
func fuzz[T any](f *testing.F, format wire[T], names ...string) {
	for _, name := range names {
		for _, record := range records(f, name) {
			f.Add(record)
		}
	}
	for _, odd := range []string{
		``, `null`, `{}`, `[]`, ` {"session_id":5,"content":[null,"\ud800"]}x`, `{"result":[1.10]}`, `{"cost":"NaN"}`,
		`{"toolUses":[null,{"toolUseId":1e5}],"endTurn":"TRUE"}`, "{\"role\":\"\xff\"}", `{"a\u0062":{"c":[{}]}}`,
		`{"action":"purge","reason":false}`, `{"originalValue":"{\"latest_input\":{}}"}`,
	} {
		f.Add([]byte(odd))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		requireSameResult(t, format, record)
		v, err := format.Unmarshal(record)
		if err != nil {
			return
		}
		written, err := format.Marshal(v)
		require.NoError(t, err)
		require.True(t, jsontext.Value(written).IsValid(
			jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), "%s", written)
		again, err := format.Unmarshal(written)
		if errors.Is(err, ErrDepth) {
			// A wrapped result is one level deeper.
			return
		}
		require.NoError(t, err)
		same, err := format.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(same))
	})
}

func FuzzMessage(f *testing.F)           { fuzz(f, messageWire, "message-input") }
func FuzzEnrichedMessage(f *testing.F)   { fuzz(f, enrichedWire, "enriched-message-input") }
func FuzzThinkResponse(f *testing.F)     { fuzz(f, thinkWire, "think-request-response") }
func FuzzThinkFailure(f *testing.F)      { fuzz(f, failureWire, "think-dlq", "enriched-message-input") }
func FuzzToolUseItem(f *testing.F)       { fuzz(f, toolUseWire, "tool-use", "tool-use-dlq") }
func FuzzToolUseResult(f *testing.F)     { fuzz(f, toolResultWire, "tool-use-result") }
func FuzzToolResults(f *testing.F)       { fuzz(f, toolResultsWire, "tool-use-all-complete") }
func FuzzOutput(f *testing.F)            { fuzz(f, outputWire, "message-output") }
func FuzzRoute(f *testing.F)             { fuzz(f, routeWire, "reply-to") }
func FuzzCompactionRequest(f *testing.F) { fuzz(f, compactionRequestWire, "compaction-request") }
func FuzzCompactionResult(f *testing.F)  { fuzz(f, compactionResultWire, "compaction-result") }
func FuzzControl(f *testing.F)           { fuzz(f, controlWire, "session-control") }
func FuzzSessionEnd(f *testing.F)        { fuzz(f, sessionEndWire, "session-end") }
func FuzzMemoirSnapshot(f *testing.F)    { fuzz(f, snapshotWire, "memoir-context-session-end") }
func FuzzToolLatency(f *testing.F)       { fuzz(f, latencyWire, "tool-use-latency") }
func FuzzAgentEvent(f *testing.F)        { fuzz(f, agentEventWire, "agent-events") }
func FuzzBatchMessage(f *testing.F)      { fuzz(f, batchMessageWire, "batch-messages") }
func FuzzSessionCost(f *testing.F)       { fuzz(f, sessionCostWire, "session-cost") }
func FuzzRaw(f *testing.F)               { fuzz(f, rawWire, "message-input") }

// FuzzRawOperations holds what is done to raw values against what their elements say one by one.
func FuzzRawOperations(f *testing.F) {
	for _, v := range []string{
		`[]`, `[null]`, `[1, null,{"a":null}]`, `["[null"]`, `[[null],null]`, ` [ ] `, `{"a":1}`, `"null"`, `5`,
		`[{"type":"text","text":"a"}]`,
	} {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		Text(v)
		TextOf(v)
		Lookup(v, "a")
		Equal(v, v)
		require.Equal(t, string(formatted(v)), string(canonical(v)))
		if !jsontext.Value(v).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			return
		}
		spliced := Splice(v, v)
		require.True(t, jsontext.Value(spliced).IsValid(
			jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), "%s", spliced)
		elements, err := Elements(v)
		if err != nil {
			return
		}
		var want []Raw
		for range 2 {
			for _, e := range elements {
				if e != nil {
					want = append(want, e)
				}
			}
		}
		got, err := Elements(spliced)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
func FuzzDelivery(f *testing.F)        { fuzz(f, deliveryWire, "deliveries") }
func FuzzReceipt(f *testing.F)         { fuzz(f, receiptWire, "delivery-receipts") }
func FuzzDeadDelivery(f *testing.F)    { fuzz(f, deadDeliveryWire, "delivery-dlq") }
func FuzzDeliveryControl(f *testing.F) { fuzz(f, deliveryControlWire, "delivery-control") }

func FuzzGateRequest(f *testing.F)     { fuzz(f, gateRequestWire, "gate-requests") }
func FuzzGateDecision(f *testing.F)    { fuzz(f, gateDecisionWire, "gate-decisions") }
func FuzzGateOutcome(f *testing.F)     { fuzz(f, gateOutcomeWire, "gate-outcomes") }
func FuzzGateGrant(f *testing.F)       { fuzz(f, gateGrantWire, "gate-grants") }
func FuzzPeerAudit(f *testing.F)       { fuzz(f, peerAuditWire, "peer-audit") }
func FuzzPeerCommand(f *testing.F)     { fuzz(f, peerCommandWire, "peer-commands") }
func FuzzPeerReply(f *testing.F)       { fuzz(f, peerReplyWire, "peer-replies") }
func FuzzDelegationReply(f *testing.F) { fuzz(f, delegationReplyWire, "delegation-replies") }
func FuzzCrewInput(f *testing.F)       { fuzz(f, crewInputWire, "crew-inputs") }
func FuzzCrewAction(f *testing.F)      { fuzz(f, crewActionWire, "crew-actions") }
func FuzzCrewEvent(f *testing.F)       { fuzz(f, crewEventWire, "crew-events") }
func FuzzDelegation(f *testing.F)      { fuzz(f, delegationWire, "delegation-status") }

// FuzzChannelParts reads what processors/delegation writes into the metadata of messages and into reply descriptors.
func FuzzChannelParts(f *testing.F) {
	for _, v := range []string{
		`{"channel":"slack","account":"main","recipient":"C1","group":true,"adapter":{"a":1}}`,
		`{"agent":"harbor","session_id":"s","callback_id":"c","depth":1}`,
		`{"callback_id":"c","status":"failed","sender":"hand:pilot","name":"pilot","depth":2}`, `null`, `[]`, `5`,
	} {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		if o, err := DecodeOrigin(v); err == nil {
			again, err := DecodeOrigin(EncodeOrigin(o))
			require.NoError(t, err)
			require.Equal(t, o, again)
		}
		if task, err := DecodeDelegationTask(v); err == nil {
			again, err := DecodeDelegationTask(EncodeDelegationTask(task))
			require.NoError(t, err)
			require.Equal(t, task, again)
		}
		if note, err := DecodeDelegationNote(v); err == nil {
			again, err := DecodeDelegationNote(EncodeDelegationNote(note))
			require.NoError(t, err)
			require.Equal(t, note, again)
		}
	})
}
