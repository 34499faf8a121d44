import "reflect-metadata";

export { Injectable, Module, SetMetadata } from "@nestjs/common";
export { Reflector } from "@nestjs/core";
export { Test } from "@nestjs/testing";
