package topics

var (
	compactionRequestWire = tagged[CompactionRequest](nil)
	compactionResultWire  = tagged(checkCompactionResult)
)

// checkCompactionResult rejects a result that names no request, because no turn can use it.
func checkCompactionResult(r *CompactionResult) error {
	if r.CompactionID == "" {
		return missing("compaction_id")
	}
	return nil
}
