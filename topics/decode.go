package topics

// The functions below decode the values of catalog topics for callers that have a record's bytes but no Catalog. They
// decode as the topics' codecs do. The results alias raw.

// DecodeThinkResponse decodes a value of {agent}-think-request-response.
func DecodeThinkResponse(raw Raw) (ThinkResponse, error) { return thinkWire.Unmarshal(raw) }

// DecodeThinkFailure decodes a value of {agent}-think-dlq.
func DecodeThinkFailure(raw Raw) (ThinkFailure, error) { return failureWire.Unmarshal(raw) }

// DecodeAgentEvent decodes a value of {agent}-agent-events.
func DecodeAgentEvent(raw Raw) (AgentEvent, error) { return agentEventWire.Unmarshal(raw) }

// EncodeAgentEvent encodes a value of {agent}-agent-events.
func EncodeAgentEvent(e AgentEvent) Raw { return encode(e, writeAgentEvent) }

// DecodeToolUse decodes a value of {agent}-tool-use or {agent}-tool-use-dlq.
func DecodeToolUse(raw Raw) (ToolUseItem, error) { return toolUseWire.Unmarshal(raw) }

// DecodeToolResult decodes a value of {agent}-tool-use-result.
func DecodeToolResult(raw Raw) (ToolUseResult, error) { return toolResultWire.Unmarshal(raw) }

// DecodeGateOutcome decodes a value of {agent}-gate-outcomes.
func DecodeGateOutcome(raw Raw) (GateOutcome, error) { return gateOutcomeWire.Unmarshal(raw) }

// DecodeGateDecision decodes a value of {agent}-gate-decisions.
func DecodeGateDecision(raw Raw) (GateDecision, error) { return gateDecisionWire.Unmarshal(raw) }
