// Package placettest is for tests of programs that use Placet. It holds what such
// a test needs and a program does not:
//
//   - [Open], a store in a temporary folder;
//   - [Clock], a clock that stands still until it is moved;
//   - [Reviewer], a person who answers approvals by rules;
//   - [Agent], an agent that decides by a list;
//   - [Witness], a tool whose effect can be counted from outside;
//   - [CrashStore] and [EachCrash], a process that dies at a chosen place, and
//     at each place there is.
//
// The usual test parks a call, lets a reviewer answer, resumes, and asks the
// witness how often the tool ran. Written as a [Scenario], EachCrash repeats it
// for every commit that the program makes. [Process.Finish] is such a program for an
// agent's run: it goes on with it wherever an earlier process died.
package placettest
