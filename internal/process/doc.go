// Package process starts programs in a process group of their own, stops such a
// group as a whole, and tells whether a process seen earlier still runs.
//
// A process id alone says little: it is given again. An [Identity] adds when the
// process started, on which boot of which kernel and in which pid namespace, so
// that [Look] never takes a stranger for the process that was meant.
package process
