package rowformat

const (
	// RecordLimit is the default of the largest record that a capability writes, in bytes: Kafka's default of
	// max.request.size. Rows are smaller.
	RecordLimit = 1 << 20
	// MinRecordLimit is the smallest limit that a user can set.
	MinRecordLimit = 128 << 10
)
