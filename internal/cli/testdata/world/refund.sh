#!/bin/sh
tee -a ran.txt
echo >>ran.txt
