package topics_test

import "github.com/turntable-streams/turntable/topics"

// wireTopic is what the catalog does not say about a topic. Its writers and readers are groups and programs of users; wireRecords adds
// those of Catalog.Programs.
type wireTopic struct {
	name             string
	writers, readers []string
	// headers are those beside turntable.id, which every record of Turntable has.
	headers []string
	// needs are members without which a processor dead-letters a record that the codec accepts.
	needs []string
}

// The groups that write and read topics, and programs that are not in Catalog.Programs.
const (
	user       = "your programs"
	turn       = "turn"
	fold       = "fold"
	gate       = "gate"
	deliveries = "delivery"
	websocket  = "websocket"
	peer       = "peer"
	chain      = "peer chain"
	delegation = "delegation"
	memoir     = "memoir"
	costs      = "memoir/cost"
	latencies  = "memoir/latency"
	crew       = "crew"
)

// withCapabilities are the options with which a catalog has more topics.
var withCapabilities = map[string]topics.CatalogOption{
	"WithDeliveries": topics.WithDeliveries(), "WithEvents": topics.WithEvents(), "WithCompaction": topics.WithCompaction(),
	"WithGates": topics.WithGates(), "WithPeers": topics.WithPeers(), "WithChannels": topics.WithChannels(),
	"WithMemoir": topics.WithMemoir(), "WithCosts": topics.WithCosts(), "WithCrews": topics.WithCrews(),
}

// letters are the headers of what a worker gave up.
var letters = []string{
	topics.HeaderErrorReason, topics.HeaderErrorSourceTopic, topics.HeaderErrorSourcePartition, topics.HeaderErrorSourceOffset,
}

var wireTopics = []wireTopic{
	{
		name: "message-input", headers: []string{topics.HeaderRoute}, needs: []string{"session_id"},
		writers: []string{user, delegation, peer, turn}, readers: []string{turn},
	},
	{
		name: "enriched-message-input", headers: []string{topics.HeaderDeadline, topics.HeaderAnswersFrom},
		writers: []string{turn, memoir},
	},
	{
		name: "think-request-response", headers: []string{topics.HeaderEvents},
		writers: []string{fold, turn}, readers: []string{turn},
	},
	{
		name: "think-dlq", headers: append([]string{topics.HeaderReason, topics.HeaderCost}, letters...),
		writers: []string{fold}, readers: []string{turn},
	},
	{
		name: "tool-use", headers: []string{topics.HeaderDeadline, topics.HeaderAnswersFrom},
		writers: []string{turn}, readers: []string{delegation, peer},
	},
	{name: "tool-use-dlq", headers: letters, writers: []string{turn}, readers: []string{turn}},
	{
		name: "tool-use-result", needs: []string{"tool_use_id"},
		writers: []string{delegation, peer}, readers: []string{turn},
	},
	{name: "tool-use-all-complete", writers: []string{turn}, readers: []string{user}},
	{name: "tool-use-latency", writers: []string{turn}, readers: []string{latencies}},
	{name: "message-output", writers: []string{turn}, readers: []string{user, deliveries, delegation, peer}},
	{name: "reply-to", writers: []string{user, deliveries}, readers: []string{turn, deliveries}},
	{
		name: "session-control", writers: []string{user, delegation, peer},
		readers: []string{turn, fold, gate, delegation, peer},
	},
	{name: "deliveries", writers: []string{deliveries}},
	{name: "delivery-receipts", writers: []string{deliveries}, readers: []string{deliveries}},
	{name: "delivery-dlq", writers: []string{deliveries}, readers: []string{user}},
	{name: "delivery-control", writers: []string{user}, readers: []string{deliveries}},
	{name: "compaction-request", writers: []string{turn}},
	{name: "compaction-result", readers: []string{turn}},
	{name: "agent-events", writers: []string{turn, user}, readers: []string{fold}},
	{name: "batch-messages", writers: []string{fold}, readers: []string{user}},
	{name: "gate-requests", writers: []string{turn, fold, crew, peer}, readers: []string{gate, turn, peer}},
	{
		name: "gate-decisions", writers: []string{peer, gate, user}, readers: []string{gate},
	},
	{name: "gate-outcomes", writers: []string{gate}, readers: []string{turn, fold, crew, peer}},
	{name: "gate-grants", writers: []string{gate, user}, readers: []string{gate}},
	{name: "peer-commands", writers: []string{peer, delegation}, readers: []string{peer}},
	{name: "peer-replies", writers: []string{peer}, readers: []string{delegation}},
	{name: "peer-attempts", writers: []string{peer}},
	{name: "peer-receipts", readers: []string{peer}},
	{name: "peer-callbacks", writers: []string{peer}, readers: []string{deliveries}},
	{name: "peer-events", writers: []string{peer}, readers: []string{chain}},
	{name: "peer-audit", writers: []string{chain}, readers: []string{user}},
	{name: "delegation-replies", writers: []string{delegation}, readers: []string{delegation}},
	{name: "delegation-status", writers: []string{delegation}, readers: []string{user}},
	{name: "channel-messages", writers: []string{gate}, readers: []string{deliveries}},
	{name: "session-end", writers: []string{turn}, readers: []string{user}},
	{name: "memoir-sessions", writers: []string{turn}, readers: []string{memoir}},
	{name: "memoir-lookups", headers: []string{topics.HeaderDeadline}, writers: []string{turn}, readers: []string{memoir}},
	{
		name: "memoir-context-session-end", headers: []string{topics.HeaderDeadline, topics.HeaderMemoirVersion},
		writers: []string{memoir},
	},
	{name: "memoir-context", headers: []string{topics.HeaderMemoirVersion}, writers: []string{user}, readers: []string{memoir}},
	{name: "memoir-dlq", headers: letters, readers: []string{memoir}},
	{name: "model-costs", writers: []string{turn}, readers: []string{costs}},
	{name: "session-cost", writers: []string{costs}, readers: []string{user}},
	{name: "scope-costs", writers: []string{costs}, readers: []string{costs}},
	{name: "spending", writers: []string{costs}, readers: []string{turn, user}},
	{name: "crew-agent-inputs", writers: []string{crew}, readers: []string{crew}},
	{name: "crew-inputs", writers: []string{crew}, readers: []string{crew}},
	{name: "crew-repository-inputs", writers: []string{crew}, readers: []string{crew}},
	{name: "crew-actions", writers: []string{crew}},
	{name: "crew-events", writers: []string{crew}, readers: []string{user}},
	{name: "session-context", readers: []string{websocket}},
}

// glossary describes members whose fields have no comment.
var glossary = map[string]string{
	"session_id": "The session.", "turn_id": "The turn.", "user_id": "The user.", "tenant_id": "The tenant.",
	"agent": "The agent.", "tool_name": "The tool.", "request_id": "The request_id of the message.",
	"timestamp": "When the record was written, in ISO 8601.",

	"delivery_id": "The delivery.", "gate_id": "The gate.", "grant_id": "The grant.", "task_id": "The task.",
	"callback_id": "The caller's ID of the delegation.", "call_id": "The call_id of the request.",
	"tool_id": "The tool_id of the call.", "tool_use_id": "The tool_use_id of the request.",
	"interaction_id": "The interaction_id of the request.", "option_id": "The chosen one of the request's options.",

	"attempt": "The number of the attempt, from 1.", "seq": "The number of the attempt's last record, from 0.",
	"total_tools": "The number of calls of the step.", "ok": "Whether the run succeeded.",
	"summary": "The summary of the messages.", "by": "Who decided.", "reason": "Why, for people.",
	"kind": "What body is.", "body": "The object that kind stands for.", "error": "Why the run failed.",
	"code": "The machine-readable reason.", "detail": "The reason in words.", "depth": "How many delegations led to the task, from 1.",
	"deadline_ms": "When it ends unanswered, in milliseconds since the epoch.",
	"http_status": "The status of the peer's response, 0 for none.", "answered": "Whether the headers of a response had arrived.",
	"retry_after_ms": "How long the peer asks to wait, in milliseconds.",

	"llm_calls": "The number of calls of a model.", "input_tokens": "The tokens of the requests.",
	"output_tokens": "The tokens of the answers.", "total_input_tokens": "The tokens of the requests.",
	"total_output_tokens": "The tokens of the answers.", "estimated_cost_usd": "The cost so far, in dollars.",
	"day_cost_usd": "The cost of day.", "month_cost_usd": "The cost of month.",
}

// alsoWritten are members that records can have and their types have no field for.
var alsoWritten = map[string]node{
	"EnrichedMessage": {
		{"userId", node{{"description", "The same as user_id, for the SDKs of FlightDeck."}, {"type", []string{"string", "null"}}}},
		{"latestInput", node{{"description", "The same as latest_input, for the SDKs of FlightDeck."}, {"type", []string{"object", "null"}}}},
		{"memoirContext", node{{"description", "The same as memoir_context, for the SDKs of FlightDeck."}, {"type", []string{"string", "null"}}}},
	},
	"ThinkResponse": {
		{"messages", node{
			{"description", "In a memoir-context-session-end: the conversation. Elsewhere an older name of last_input_response; write that instead."},
			{"type", []string{"array", "null"}},
			{"items", node{{"type", []string{"object", "null"}}}},
		}},
	},
	"ThinkFailure": {
		{"originalValue", node{{"description", "The enriched message as text, in a record with error."}, {"type", []string{"string", "null"}}}},
	},
	"Route": {
		{"bearerToken", node{{"description", "The secret that the callback is sent with."}, {"type", []string{"string", "null"}}}},
	},
}
