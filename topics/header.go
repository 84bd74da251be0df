package topics

// HeaderID is the header that carries the derived id of a record of ours; repeats of a record carry the same.
const HeaderID = "turntable.id"

// Headers of a dead-lettered record, as UTF-8 text. FlightDeck's Python workers write the first four too.
const (
	// HeaderErrorReason says why the record was dead-lettered. It never quotes the record.
	HeaderErrorReason = "error.reason"
	// HeaderErrorSourceTopic, HeaderErrorSourcePartition and HeaderErrorSourceOffset say where the record stood.
	HeaderErrorSourceTopic     = "error.source.topic"
	HeaderErrorSourcePartition = "error.source.partition"
	HeaderErrorSourceOffset    = "error.source.offset"
	// HeaderErrorGroup names the group that dead-lettered it.
	HeaderErrorGroup = "error.group"
	// HeaderErrorTruncated is present where the value was cut to fit, or withheld; its text is the original length in bytes.
	HeaderErrorTruncated = "error.truncated"
)
