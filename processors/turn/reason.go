package turn

// The reasons in dead letters. People and alerts match these texts: do not change them.
const (
	reasonTombstone    = "turn: tombstone"
	reasonForeignTool  = "turn: a message of role tool is written by the turn alone"
	reasonSameRequest  = "turn: a message with this request_id was accepted before"
	reasonNoFields     = "turn: response has no known field"
	reasonErrorReport  = "turn: a worker's error report, which answers no step"
	reasonSameResponse = "turn: response was accepted before"
	reasonNoStep       = "turn: no step of the session waits for the model"
	reasonOtherStep    = "turn: answers a step that is closed"
	reasonNoCall       = "turn: no open call has this tool_use_id"
	reasonCallEnded    = "turn: the call has its result already"
	reasonOtherTool    = "turn: the call with this tool_use_id is of another tool"
	reasonSameResult   = "turn: result was applied before"
	reasonNoToolUseID  = "turn: result has no tool_use_id, or one that is too long"
	reasonHeldAlready  = "turn: a result of this tool_use_id is held already"
	reasonHeldSame     = "turn: the same record is held already"
	reasonHeldFull     = "turn: too many results are held"
	reasonNoRoom       = "turn: no room in the session's row"
	reasonUnclaimed    = "turn: the turn ended before a call claimed the result"
	reasonTurnEnded    = "turn: the turn ended before the step that the record answers"
	reasonNotOpened    = "turn: the step that the record answers did not open in time"
	reasonPurged       = "turn: the session was purged before the step that the record answers"
	reasonUnreadable   = "turn: the record that was held cannot be read"
	reasonSameFailure  = "turn: failure was applied before"
	reasonTooManyRoute = "turn: too many open routes"
	reasonLateRoute    = "turn: the message that the route was written for has its output already"
	reasonRouteSize    = "turn: route is too large"
	reasonNoRequest    = "turn: nothing to cancel"
	reasonRowSize      = "turn: the session's row is over its limit"
	reasonNoCompaction = "turn: no turn waits for this summary"
	reasonLateOutcome  = "turn: no call waits for the outcome of this gate"
	reasonRefused      = "turn: the call that the result answers was not approved"
	reasonManyGates    = "turn: too many open gates, the think step does not wait for this one"
	reasonAction       = "turn: action is none of cancel, purge and end"
	reasonEndOff       = "turn: sessions do not end, the turn runs without Config.Memoir"
	reasonNotEnded     = "turn: the session cannot end now: it had no turn since its last end, or something of it is open"
)

// The reasons in the error results of calls that did not run. The model reads the text beside them.
const (
	reasonOfDenied    = "denied"
	reasonOfTimeout   = "approval_timed_out"
	reasonOfCancelled = "cancelled"
)
