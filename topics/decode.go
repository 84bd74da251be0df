package topics

// The functions below read the values of topics whose names depend on an agent, as the codecs of these topics do, for
// callers that keep a record's bytes without its topic. What they return aliases raw.

// DecodeThinkResponse reads a value of {agent}-think-request-response.
func DecodeThinkResponse(raw Raw) (ThinkResponse, error) { return thinkWire.Unmarshal(raw) }

// DecodeThinkFailure reads a value of {agent}-think-dlq.
func DecodeThinkFailure(raw Raw) (ThinkFailure, error) { return failureWire.Unmarshal(raw) }

// DecodeToolUse reads a value of {agent}-tool-use or {agent}-tool-use-dlq.
func DecodeToolUse(raw Raw) (ToolUseItem, error) { return toolUseWire.Unmarshal(raw) }

// DecodeToolResult reads a value of {agent}-tool-use-result.
func DecodeToolResult(raw Raw) (ToolUseResult, error) { return toolResultWire.Unmarshal(raw) }
