"""Trained models in folders of the user's: named, read, and looked at head by head.

given        what the user names, and which of its files are read; imports no torch
model        a model of Hugging Face's in a local folder
sequences    the tokens that a model is looked at with

A checkpoint is data. No name in it is imported, no pickle is read, nothing is downloaded.
"""
