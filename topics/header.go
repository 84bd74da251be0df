package topics

// HeaderID is the header with the ID that Turntable derives for a record that it writes. When a record is written again
// after a restart, it has the same ID, so consumers can use it to drop duplicates.
const HeaderID = "turntable.id"

// The headers of a dead-lettered record, as UTF-8 text. FlightDeck's Python workers also write the first four.
const (
	// HeaderErrorReason says why the record was dead-lettered. It never quotes the record.
	HeaderErrorReason = "error.reason"
	// HeaderErrorSourceTopic, HeaderErrorSourcePartition and HeaderErrorSourceOffset are the position of the original record.
	HeaderErrorSourceTopic     = "error.source.topic"
	HeaderErrorSourcePartition = "error.source.partition"
	HeaderErrorSourceOffset    = "error.source.offset"
	// HeaderErrorGroup is the consumer group that dead-lettered the record.
	HeaderErrorGroup = "error.group"
	// HeaderErrorTruncated is present if the value was truncated or withheld. Its text is the original length in bytes.
	HeaderErrorTruncated = "error.truncated"
)
