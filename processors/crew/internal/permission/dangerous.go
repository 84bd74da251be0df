package permission

// dangerous reports whether a person must decide about every such call.
func (c call) dangerous() bool { return false }
