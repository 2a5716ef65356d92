package dbcopy

// At has f told of each moment of the copies that follow.
func At(f func(moment string)) { moment = f }
